/** The name of a program, or its path below a directory of programs. */
const program = String.raw`((?:/[^\s:'"]{1,200}/s?bin/)?[A-Za-z0-9][\w.+-]{0,99})`;

/** The lines in which shells, interpreters and test runners report a program that they could not find. */
const reports: readonly RegExp[] = [
  // bash, dash, make: `test.sh: line 2: bats: command not found`, `sh: 1: bats: not found`
  new RegExp(String.raw`(?:^|[\s:])${program}: (?:[Cc]ommand )?not found\s*$`, 'gm'),
  // bash with a path: `test.sh: line 2: /usr/local/bin/bats: No such file or directory`
  /line \d+: (\/[^\s:'"]{1,200}\/s?bin\/[\w.+-]{1,99}): No such file or directory\s*$/gm,
  // The first line of a script: `env: ‘bats’: No such file or directory`, `x: /usr/bin/bats: bad interpreter: …`
  new RegExp(`env: [‘'"]?${program}[’'"]?: No such file or directory`, 'gm'),
  new RegExp(`: ${program}: bad interpreter`, 'gm'),
  // make: `make: bats: No such file or directory`
  new RegExp(String.raw`^make(?:\[\d+\])?: ${program}: No such file or directory`, 'gm'),
  // Python, Node and Go
  new RegExp(String.raw`FileNotFoundError: \[Errno 2\] No such file or directory: '${program}'`, 'gm'),
  new RegExp(`spawn ${program} ENOENT`, 'gm'),
  new RegExp(`exec: "${program}": executable file not found`, 'gm'),
];

/** `python3 -m pytest` where there is no pytest: `/usr/bin/python3: No module named pytest` */
const missingModule = /python[\d.]*: No module named '?([A-Za-z_][\w.]{0,99})/g;

const mostNames = 20;

/**
 * Returns the names of the programs and Python modules that the log of tests reports as missing. The code under test may print
 * such lines, too, so they prove nothing by themselves.
 */
export function missingPrograms(log: string): readonly string[] {
  const programs = reports.flatMap((report) => [...log.matchAll(report)].map(([, name = '']) => name));
  const modules = [...log.matchAll(missingModule)].map(([, name = '']) => `the Python module ${name}`);
  return [...new Set([...programs, ...modules])].slice(0, mostNames);
}
