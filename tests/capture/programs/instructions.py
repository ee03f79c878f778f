"""Rare instructions: async functions, class bodies, long code."""

ASYNC = "async functions run as plain Python"


class Ready:
    """Awaitable without a loop: it gives control back once."""

    def __init__(self, value):
        self.value = value

    def __await__(self):
        got = yield "waiting"
        return self.value, got


class Manager:
    def __init__(self, log):
        self.log = log

    async def __aenter__(self):
        self.log.append("enter")
        return 2

    async def __aexit__(self, kind, error, trace):
        self.log.append(kind and kind.__name__)
        return True


class Numbers:
    def __init__(self, n):
        self.n = n

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self.n == 0:
            raise StopAsyncIteration
        self.n -= 1
        return self.n


def drive(coroutine):
    """Runs a coroutine to its end."""
    sent = []
    while True:
        try:
            sent.append(coroutine.send(len(sent) or None))
        except StopIteration as stop:
            return stop.value, sent


@program(given((3,)), graphs=None, breaks=ASYNC)
def coroutines(x):
    async def work(y):
        value, got = await Ready(y * 2)
        return value, got

    return drive(work(x + 1))


@program(given((3,)), graphs=None, breaks=ASYNC)
def async_contexts(x):
    log = []

    async def work(y):
        async with Manager(log) as n:
            y = y * n
            raise ValueError("swallowed")
        return y

    return drive(work(x)), log


@program(given((3,)), graphs=None, breaks=ASYNC)
def async_loops(x):
    async def work(y):
        async for n in Numbers(3):
            y = y + n
        else:
            y = y * 2
        return y, [n async for n in Numbers(2)]

    return drive(work(x))


@program(given((3,)), graphs=None, breaks=ASYNC)
def async_generators(x):
    async def produce(y):
        for i in range(2):
            got, _ = await Ready(i)
            yield y * got

    async def work(y):
        return [v async for v in produce(y)]

    return drive(work(x))


@program(given((3,)), graphs=None, breaks=ASYNC, use=drive)
def coroutine_escapes(x):
    async def work(y):
        return y + 1

    return work(x * 2)


@program(given((3,)), graphs=None, breaks="defining a class runs a class body")
def class_body_with_every_statement(x):
    outside = 5

    class Body:
        """Text."""

        n: int = 1
        m = n + outside
        temporary = 3
        del temporary
        for i in range(2):
            m += i
        items = [outside for _ in range(2)]
        if m > 3:
            def method(self):
                return self.m
        try:
            undefined
        except NameError:
            caught = True

    b = Body()
    return x * b.method(), Body.__doc__, Body.items, Body.caught, hasattr(Body, "temporary"), Body.__annotations__


@program(given((3,)))
def jump_backward_on_none(x):
    nodes = [3, None, 2, 1]
    n = 0
    while nodes[n] is not None:
        n += 1
    m = n
    while nodes[m] is None:
        m += 1
    while True:
        m -= 1
        if m == 0:
            break
        if nodes[m] is None:
            continue
        x = x + nodes[m]
    return x * n, m


@program(given((3,)))
def jumps_backward_of_all_kinds(x):
    i = 0
    while i < 3:
        i += 1
    while not i == 5:
        i += 1
    items = [None, None, 7]
    while items[0] is None:
        items.pop(0)
    while items and items[-1] is not None:
        items.pop()
    return x * i, items


@program(given((3,)))
def operators_of_python_values(x):
    n = 5
    return x * -n, +n, ~n, not n, n is None, n is not None, n in (1, 5), n not in (1, 5), n if n else 0, (n and 3) or 4


@program(given((3,)))
def slices_with_all_parts(x):
    a, b, c = 0, 3, 2
    items = [1, 2, 3, 4]
    items[a:b] = [9]
    return x[a:b], x[a:b:c], items[a:], items[::c], "abc"[a:b]


@program(given((3,)))
def calls_of_all_kinds(x):
    def f(*args, **kwargs):
        return len(args), sorted(kwargs)

    args, kwargs = (1, 2), {"a": 1}
    return x + 1, f(), f(1), f(1, k=2), f(*args), f(*args, 3), f(**kwargs), f(*args, **kwargs), f(*[1], *args, z=1, **kwargs, **{"b": 2}), x.sum(dim=0)


@program(given((3,)))
def displays_of_all_kinds(x):
    one = 1
    return (x * one, {one, 2}, {1, 2, 3}, {one: 2}, {"a": one, "b": one}, [one, 2], [1, 2, 3], (*[one], 2), {**{"c": one}}, {*(one,), 3}, [*(1, 2), 3],
            f"{one}{one!r:>5}", one if one else 2)


@program(given((3,)))
def cells_of_all_kinds(x):
    n = 1

    def write():
        nonlocal n, m
        n += 1
        m = n
        return lambda: (n, m, x)

    m = 0
    inner = write()
    result = inner()
    del m
    return result[:2], result[2] + n


@program(given((3,)))
def very_many_constants(x):
    values = [
        1000 + x.dim(), 1001, 1002, 1003, 1004, 1005 + x.dim(), 1006, 1007, 1008, 1009, 1010 + x.dim(), 1011, 1012, 1013, 1014, 1015 + x.dim(), 1016, 1017, 1018, 1019,
        1020 + x.dim(), 1021, 1022, 1023, 1024, 1025 + x.dim(), 1026, 1027, 1028, 1029, 1030 + x.dim(), 1031, 1032, 1033, 1034, 1035 + x.dim(), 1036, 1037, 1038, 1039,
        1040 + x.dim(), 1041, 1042, 1043, 1044, 1045 + x.dim(), 1046, 1047, 1048, 1049, 1050 + x.dim(), 1051, 1052, 1053, 1054, 1055 + x.dim(), 1056, 1057, 1058, 1059,
        1060 + x.dim(), 1061, 1062, 1063, 1064, 1065 + x.dim(), 1066, 1067, 1068, 1069, 1070 + x.dim(), 1071, 1072, 1073, 1074, 1075 + x.dim(), 1076, 1077, 1078, 1079,
        1080 + x.dim(), 1081, 1082, 1083, 1084, 1085 + x.dim(), 1086, 1087, 1088, 1089, 1090 + x.dim(), 1091, 1092, 1093, 1094, 1095 + x.dim(), 1096, 1097, 1098, 1099,
        1100 + x.dim(), 1101, 1102, 1103, 1104, 1105 + x.dim(), 1106, 1107, 1108, 1109, 1110 + x.dim(), 1111, 1112, 1113, 1114, 1115 + x.dim(), 1116, 1117, 1118, 1119,
        1120 + x.dim(), 1121, 1122, 1123, 1124, 1125 + x.dim(), 1126, 1127, 1128, 1129, 1130 + x.dim(), 1131, 1132, 1133, 1134, 1135 + x.dim(), 1136, 1137, 1138, 1139,
        1140 + x.dim(), 1141, 1142, 1143, 1144, 1145 + x.dim(), 1146, 1147, 1148, 1149, 1150 + x.dim(), 1151, 1152, 1153, 1154, 1155 + x.dim(), 1156, 1157, 1158, 1159,
        1160 + x.dim(), 1161, 1162, 1163, 1164, 1165 + x.dim(), 1166, 1167, 1168, 1169, 1170 + x.dim(), 1171, 1172, 1173, 1174, 1175 + x.dim(), 1176, 1177, 1178, 1179,
        1180 + x.dim(), 1181, 1182, 1183, 1184, 1185 + x.dim(), 1186, 1187, 1188, 1189, 1190 + x.dim(), 1191, 1192, 1193, 1194, 1195 + x.dim(), 1196, 1197, 1198, 1199,
        1200 + x.dim(), 1201, 1202, 1203, 1204, 1205 + x.dim(), 1206, 1207, 1208, 1209, 1210 + x.dim(), 1211, 1212, 1213, 1214, 1215 + x.dim(), 1216, 1217, 1218, 1219,
        1220 + x.dim(), 1221, 1222, 1223, 1224, 1225 + x.dim(), 1226, 1227, 1228, 1229, 1230 + x.dim(), 1231, 1232, 1233, 1234, 1235 + x.dim(), 1236, 1237, 1238, 1239,
        1240 + x.dim(), 1241, 1242, 1243, 1244, 1245 + x.dim(), 1246, 1247, 1248, 1249, 1250 + x.dim(), 1251, 1252, 1253, 1254, 1255 + x.dim(), 1256, 1257, 1258, 1259,
        1260 + x.dim(), 1261, 1262, 1263, 1264, 1265 + x.dim(), 1266, 1267, 1268, 1269, 1270 + x.dim(), 1271, 1272, 1273, 1274, 1275 + x.dim(), 1276, 1277, 1278, 1279,
        1280 + x.dim(), 1281, 1282, 1283, 1284, 1285 + x.dim(), 1286, 1287, 1288, 1289, 1290 + x.dim(), 1291, 1292, 1293, 1294, 1295 + x.dim(), 1296, 1297, 1298, 1299,
    ]
    total = sum(values) - values[0]
    name0 = total * 2
    return x * total, name0
