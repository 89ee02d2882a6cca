import type { TestStatus } from '../../../workflows/contracts/resolution.ts';
import { createTally, type ParsedTests, type Place } from './parsed-tests.ts';

/** Go's id of a test: its own name, or that behind its package. */
export type GoId = (test: string, packagePath: string | null) => string;

export const qualifiedId: GoId = (test, packagePath) => (packagePath === null ? test : `${packagePath}.${test}`);
export const bareId: GoId = (test) => test;

/**
 * Gathers what `go test` says of the tests of each package. A test that started and never ended took its package down with
 * it: an error.
 */
export function createGoResults(idOf: GoId): {
  readonly started: (packagePath: string | null, test: string) => void;
  readonly ended: (packagePath: string | null, test: string, status: TestStatus, place?: Place) => void;
  readonly package: (packagePath: string, status: TestStatus) => void;
  readonly broken: (detail: string) => void;
  readonly crashed: (detail: string) => void;
  readonly done: () => ParsedTests;
} {
  const tally = createTally();
  const running = new Map<string, string>();
  const keyOf = (packagePath: string | null, test: string): string => JSON.stringify([packagePath, test]);
  return {
    started: (packagePath, test) => running.set(keyOf(packagePath, test), idOf(test, packagePath)),
    ended: (packagePath, test, status, place) => {
      running.delete(keyOf(packagePath, test));
      tally.record(idOf(test, packagePath), status, place);
    },
    package: (packagePath, status) => tally.suite(packagePath, status),
    broken: (detail) => tally.problem('collection-error', detail),
    crashed: (detail) => tally.problem('crashed', detail),
    done: () => {
      for (const id of running.values()) tally.record(id, 'ERROR');
      return tally.done();
    },
  };
}
