import type { Shortfall, TestStatus } from '../../../workflows/contracts/resolution.ts';

/** The classes of statuses that count alike for both lists. */
const classes: Readonly<Record<TestStatus, 'good' | 'skipped' | 'bad'>> = {
  PASSED: 'good',
  XFAIL: 'good',
  SKIPPED: 'skipped',
  XPASS: 'bad',
  FAILED: 'bad',
  ERROR: 'bad',
};

/**
 * Returns a function that finds the status of a required test. Hundreds of ids in SWE-bench's lists are cut off inside their
 * parameters (SWE-bench issue 290): an id whose bracket is never closed stands for all tests that begin with it, if their
 * statuses count alike. If not, the meant test cannot be known (issue 663: the order of the log must not decide).
 */
export function createTestFinder(tests: ReadonlyMap<string, TestStatus>): (id: string) => Shortfall['status'] {
  const ids = [...tests.keys()].sort();
  return (required) => {
    const id = required.trim();
    const exact = tests.get(id);
    if (exact !== undefined) return exact;
    if (!isCutOff(id)) return 'MISSING';
    const found: TestStatus[] = [];
    for (let index = firstFrom(ids, id); ids[index]?.startsWith(id); index += 1) {
      const status = tests.get(ids[index] ?? '');
      if (status !== undefined) found.push(status);
    }
    const [first] = found;
    if (first === undefined) return 'MISSING';
    return found.every((status) => classes[status] === classes[first]) ? first : 'AMBIGUOUS';
  };
}

/** Whether an id was cut off. Only ids with parameters are; a prefix of another id would be another test. */
function isCutOff(id: string): boolean {
  const name = id.slice(id.indexOf('::') + 1);
  return name.includes('[') && name.split('[').length > name.split(']').length;
}

/** Returns the index of the first of the sorted ids that is not below `id`. Bisects, since lists and logs have thousands. */
function firstFrom(ids: readonly string[], id: string): number {
  let low = 0;
  let high = ids.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ids[middle] ?? '') < id) low = middle + 1;
    else high = middle;
  }
  return low;
}
