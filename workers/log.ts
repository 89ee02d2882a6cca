import { type Logger, pino } from 'pino';
import type { Config } from '../infra/settings/config.ts';

/** Creates the log of a process: JSON lines on stdout. */
export function createLog(config: Config, part: string): Logger {
  const serializers = { error: pino.stdSerializers.err };
  return pino({ level: config.logLevel, base: { part, pid: process.pid }, serializers });
}
