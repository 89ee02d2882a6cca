import type { ServiceHealthCheck } from '../sandbox/service.ts';
import type { Service } from './schema.ts';
import { millisecondsIn, type Reading, requireOnly } from './values.ts';

/** Reads the health check of a service; null if it has none of its own. */
export function healthCheckOf({ healthcheck: given }: Service, reading: Reading): ServiceHealthCheck | null {
  if (given === undefined) return null;
  const { fill, reject } = reading;
  const known = ['test', 'interval', 'timeout', 'start_period', 'start_interval', 'retries', 'disable'];
  requireOnly(given, 'healthcheck', known, reject);
  if (given.disable === true) return { test: ['NONE'] };
  const { test } = given;
  const duration = (field: 'interval' | 'timeout' | 'start_period'): number | undefined => {
    const value = given[field];
    return value === undefined ? undefined : millisecondsIn(value, `healthcheck.${field}`, reading);
  };
  const [intervalMs, timeoutMs, startPeriodMs] = [duration('interval'), duration('timeout'), duration('start_period')];
  return {
    ...(test !== undefined && {
      test:
        typeof test === 'string'
          ? ['CMD-SHELL', fill(test, 'healthcheck.test')]
          : test.map((word) => fill(word, 'healthcheck.test')),
    }),
    ...(intervalMs !== undefined && { intervalMs }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(startPeriodMs !== undefined && { startPeriodMs }),
    ...(given.retries !== undefined && { retries: given.retries }),
  };
}
