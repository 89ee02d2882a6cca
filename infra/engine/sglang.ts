import { isLoaded, publishByLora } from './adapters.ts';
import { createEngineConnection } from './connection.ts';
import type { Engine, EngineOptions } from './engine.ts';
import { createQuarantine } from './quarantine.ts';
import { createServedModels } from './served.ts';
import { generateFrom } from './sglang/generate.ts';
import { healthOf, type ServerSizes, sizesOf } from './sglang/health.ts';
import { adapterRoutes, publishByReload } from './sglang/publish.ts';

/**
 * SGLang 0.5.3 and later over HTTP. Start it with `--incremental-streaming-output`: without, every chunk repeats all before
 * it, and a turn of n tokens costs n² to read.
 *
 * Not covered: servers behind a router (each replica is an engine of its own), logprobs at temperatures other than 1.
 */
export function createSglangEngine(options: EngineOptions): Engine {
  const { model, method, baseVersion = null, keepAdapters = 2 } = options;
  const connection = createEngineConnection(options.url, options.apiKey);
  const served = createServedModels(connection, { model, method, baseVersion });
  const quarantine = createQuarantine();
  let sizes: ServerSizes | null = null;

  return {
    url: connection.url,

    async *generate(request, signal) {
      quarantine.check();
      const current = await served.current(signal, request.policyVersion);
      yield* generateFrom({ connection, model, served: current, baseVersion }, request, signal);
    },

    async health(signal) {
      try {
        sizes ??= await sizesOf(connection, signal);
        return await healthOf(connection, { model, method }, sizes, signal);
      } catch (error) {
        // What comes back may be another server.
        sizes = null;
        throw error;
      }
    },

    async publish(publication, signal) {
      if (publication.method === 'lora') {
        await publishByLora(connection, { model, keep: keepAdapters, routes: adapterRoutes }, publication, signal);
        served.forget();
      } else {
        await quarantine.during(() => publishByReload(connection, publication, signal));
      }
    },

    // Of whole weights it has one set.
    hold: async (version, signal) => method === 'lora' && isLoaded(connection, { model, version }, signal),
  };
}
