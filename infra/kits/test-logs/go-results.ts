import type { ParsedTests, ReportPosition, TestStatus } from './log-parser.ts';
import { createResultCollector } from './result-collector.ts';

/** Builds the id of a Go test: its name alone, or its package and name. */
export type GoId = (test: string, packagePath: string | null) => string;

export const qualifiedId: GoId = (test, packagePath) => (packagePath === null ? test : `${packagePath}.${test}`);
export const bareId: GoId = (test) => test;

/**
 * Collects the results of `go test` for the tests of each package. A test that started and never ended crashed its package,
 * so its status is ERROR. A sub-test that fails, fails the tests around it.
 */
export function createGoResults(idOf: GoId): {
  readonly started: (packagePath: string | null, test: string) => void;
  readonly ended: (packagePath: string | null, test: string, status: TestStatus, position?: ReportPosition) => void;
  readonly package: (packagePath: string, status: TestStatus) => void;
  readonly broken: (detail: string) => void;
  readonly crashed: (detail: string) => void;
  readonly finish: () => ParsedTests;
} {
  const collector = createResultCollector();
  const running = new Map<string, string>();
  const keyOf = (packagePath: string | null, test: string): string => JSON.stringify([packagePath, test]);
  return {
    started: (packagePath, test) => running.set(keyOf(packagePath, test), idOf(test, packagePath)),
    ended: (packagePath, test, status, position) => {
      running.delete(keyOf(packagePath, test));
      collector.record(idOf(test, packagePath), status, position);
      if (status !== 'FAILED') return;
      for (const parent of parentsOf(test)) collector.recordOutside(idOf(parent, packagePath), 'FAILED');
    },
    package: (packagePath, status) => collector.recordSuite(packagePath, status),
    broken: (detail) => collector.recordProblem('collection-error', detail),
    crashed: (detail) => collector.recordProblem('crashed', detail),
    finish: () => {
      for (const id of running.values()) collector.record(id, 'ERROR');
      return collector.finish();
    },
  };
}

/** More than any test has sub-tests around it. */
const deepestTest = 32;

function parentsOf(test: string): readonly string[] {
  const parents: string[] = [];
  for (let end = test.lastIndexOf('/'); end > 0 && parents.length < deepestTest; end = test.lastIndexOf('/', end - 1))
    parents.push(test.slice(0, end));
  return parents;
}
