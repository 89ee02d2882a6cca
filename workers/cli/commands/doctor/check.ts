import type { Config } from '../../../../infra/config.ts';

/** One line of the doctor. `missing`: nothing works without it; `warn`: something does not. */
export interface Check {
  readonly name: string;
  readonly state: 'ok' | 'warn' | 'missing';
  readonly found: string;
  /** What to do; null when nothing has to be done. */
  readonly remedy: string | null;
}

export interface DoctorWishes {
  readonly register: boolean;
  /** A model directory to look at. */
  readonly model: string | undefined;
}

export type Look = (config: Config, wishes: DoctorWishes) => AsyncIterable<Check>;

export const ok = (name: string, found: string): Check => ({ name, state: 'ok', found, remedy: null });
export const warn = (name: string, found: string, remedy: string): Check => ({ name, state: 'warn', found, remedy });
export const missing = (name: string, found: string, remedy: string): Check => ({
  name,
  state: 'missing',
  found,
  remedy,
});

export const message = (error: unknown): string => (error instanceof Error ? error.message : String(error));
