import assert from 'node:assert/strict';
import type { GenerateEvent } from '../../../infra/engine/engine.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';

/** Collects all events of a generation. */
export async function collect(events: AsyncIterable<GenerateEvent>): Promise<GenerateEvent[]> {
  const all: GenerateEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

/** Returns a check for `assert.rejects`: a failure of this type with this message. */
export function failsWith(type: string, message: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof TemperFailure, String(error));
    assert.equal(error.type, type);
    assert.match(error.message, message);
    return true;
  };
}
