import { setTimeout as sleep } from 'node:timers/promises';
import type { Engine, EngineHealth, GenerateEvent, GenerateRequest } from '../../../infra/engine/engine.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { idsOf } from './prompt-ids.ts';

/**
 * A step of a script that takes the place of weights. One step answers one `generate` call; the sampled tokens arrive in events
 * of `chunk` ids, with logprobs that can be recognised: the n-th token has -(n + 1) / 1000.
 */
export type Step =
  | {
      readonly kind: 'say';
      readonly ids: readonly number[];
      readonly version?: number;
      readonly cut?: 'length' | 'abort';
    }
  /** Fails after the ids. */
  | { readonly kind: 'fail'; readonly ids?: readonly number[]; readonly type: 'EngineUnavailable' | 'EngineInvalid' }
  /** Samples the ids and then nothing more until it is aborted. */
  | { readonly kind: 'hang'; readonly ids?: readonly number[] };

export interface ScriptedRequest extends GenerateRequest {
  /** The ids of its prompt. */
  readonly tokenIds: readonly number[];
}

export interface ScriptedEngine extends Engine {
  readonly requests: readonly ScriptedRequest[];
  /** The number of generations that have begun and not ended. */
  readonly running: number;
  /** The number of those that have sent all their tokens and hang. */
  readonly hanging: number;
}

export interface ScriptedEngineOptions {
  /** Answers a request; `index` counts the calls. */
  readonly script: (request: ScriptedRequest, index: number) => Step | Promise<Step>;
  readonly contextLength?: number | null;
  readonly chunk?: number;
  readonly delayMs?: number;
  /** The event before the last ids of a reply. Default: none. */
  readonly beforeLast?: Promise<unknown>;
}

export function createScriptedEngine(options: ScriptedEngineOptions): ScriptedEngine {
  const { script, contextLength = 100_000, chunk = 3, delayMs = 0, beforeLast } = options;
  const requests: ScriptedRequest[] = [];
  let running = 0;
  let hanging = 0;

  async function* play(step: Step, signal: AbortSignal): AsyncIterable<GenerateEvent> {
    const ids = step.ids ?? [];
    for (let at = 0; at < ids.length; at += chunk) {
      if (delayMs > 0) await sleep(delayMs, undefined, { signal });
      if (at + chunk >= ids.length) await beforeLast;
      const tokenIds = ids.slice(at, at + chunk);
      yield { tokenIds, logprobs: tokenIds.map((_, index) => -(at + index + 1) / 1000) };
    }
    if (step.kind === 'fail') throw new TemperFailure(step.type, 'the script says so');
    if (step.kind === 'hang') {
      hanging += 1;
      await untilAborted(signal).finally(() => {
        hanging -= 1;
      });
    } else yield { tokenIds: [], logprobs: [], ...endOf(step) };
  }

  return {
    url: 'scripted:',
    requests,
    get running() {
      return running;
    },
    get hanging() {
      return hanging;
    },
    async *generate(generation, signal) {
      const request = { ...generation, tokenIds: idsOf(generation.prompt) };
      requests.push(request);
      running += 1;
      try {
        yield* play(await script(request, requests.length - 1), signal);
      } finally {
        running -= 1;
      }
    },
    health: async (): Promise<EngineHealth> => ({ ready: true, paused: false, version: 0, contextLength }),
    pinVersion: async () => true,
    publish: async () => {},
  };
}

function endOf({
  ids,
  version = 1,
  cut,
}: Extract<Step, { kind: 'say' }>): Pick<GenerateEvent, 'finishReason' | 'versions'> {
  const versions = ids.length === 0 ? [] : [{ version, start: 0, end: ids.length }];
  return { finishReason: cut ?? 'stop', versions };
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    if (signal.aborted) reject(signal.reason);
  });
}
