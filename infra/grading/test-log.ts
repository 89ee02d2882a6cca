/**
 * Counts of single tests in a log, for people to read: never the source of a reward. Knows the lines of `pytest -rA`
 * (`PASSED id`) and of TAP (`ok 1 - name`).
 */
export function countTests(log: string): { readonly passed: number; readonly failed: number } {
  const named = count(log, /^(PASSED|FAILED|ERROR) \S/gm, 'PASSED');
  return named.passed + named.failed > 0 ? named : count(log, /^\s*(ok|not ok) \d+/gm, 'ok');
}

function count(log: string, pattern: RegExp, good: string): { readonly passed: number; readonly failed: number } {
  const all = [...log.matchAll(pattern)];
  const passed = all.filter(([, status]) => status === good).length;
  return { passed, failed: all.length - passed };
}
