/** Returns a shell command that runs a Python program. */
export const python = (program: string): string => `python3 - <<'END'\nimport ctypes, os, time\n${program}\nEND\n`;

/** Fills segments of System V, which outlive their processes, until the kernel ends the program that does. */
export const fillSegments = python(`
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
while True:
    at = libc.shmat(libc.shmget(0, ctypes.c_size_t(1 << 20), 0o1600), None, 0)
    ctypes.memset(at, 1, 1 << 20)
    libc.shmdt(ctypes.c_void_p(at))
`);
