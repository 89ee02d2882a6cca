import { TemperFailure } from './failures.ts';

/** A refusal for now. */
export class ThrottledFailure extends TemperFailure {
  /** The pause that was asked for; null if none was. */
  readonly retryAfterMs: number | null;

  constructor(message: string, retryAfterMs: number | null, options?: ErrorOptions) {
    super('Throttled', message, options);
    this.name = 'ThrottledFailure';
    this.retryAfterMs = retryAfterMs;
  }
}
