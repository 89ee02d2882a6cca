import { type AdapterRoutes, publishByLora } from './adapters.ts';
import { createEngineConnection, type EngineConnection } from './connection.ts';
import type { Engine, EngineHealth, EngineOptions, GenerateEvent, GenerateRequest, Publication } from './engine.ts';
import { createModelSelector, type SelectedModel } from './model-selection.ts';
import { createQuarantine } from './reload.ts';

/** A server, and how its versions are published and attributed. */
export interface EngineServer {
  readonly connection: EngineConnection;
  readonly model: string;
  readonly method: 'reload' | 'lora';
  /** The policy that is served to this caller; undefined: whichever is in service. */
  readonly policy: string | undefined;
  /** Version of weights that were never published; null: they are refused. */
  readonly baseVersion: number | null;
}

/** The part of an engine that differs from one kind of server to another. */
export interface EngineDialect {
  readonly adapterRoutes: AdapterRoutes;
  generate(model: SelectedModel, request: GenerateRequest, signal: AbortSignal): AsyncIterable<GenerateEvent>;
  health(signal?: AbortSignal): Promise<EngineHealth>;
  publishByReload(publication: Publication, signal?: AbortSignal): Promise<void>;
  pinVersion(version: number, signal?: AbortSignal): Promise<boolean>;
  /** Unloads pinned whole weights that are not among the versions to keep. */
  unpinVersions(keep: readonly number[], signal?: AbortSignal): Promise<void>;
  /** Drops what is known of the server: the one that answers after a failure may be another. */
  forgetServer(): void;
}

/** Creates an engine over HTTP: selects the model of each request, publishes, and quarantines a half-published server. */
export function createHttpEngine(
  options: EngineOptions,
  createDialect: (server: EngineServer) => EngineDialect,
): Engine {
  const { model, policy, method, baseVersion = null, keepAdapters = 2 } = options;
  // The names of adapters tell whose they are.
  const connection = createEngineConnection({ ...options, policy: method === 'reload' ? policy : undefined });
  const dialect = createDialect({ connection, model, policy, method, baseVersion });
  const selector = createModelSelector(connection, { model, policy, method, baseVersion });
  const quarantine = createQuarantine();
  return {
    url: connection.url,

    async *generate(request, signal) {
      quarantine.check();
      yield* dialect.generate(await selector.select(signal, request.policyVersion), request, signal);
    },

    async health(signal) {
      try {
        return await dialect.health(signal);
      } catch (error) {
        dialect.forgetServer();
        throw error;
      }
    },

    async publish(publication, signal) {
      if (publication.method === 'lora') {
        const target = { model, policy, keep: keepAdapters, routes: dialect.adapterRoutes };
        await publishByLora(connection, target, publication, signal);
        selector.forget();
      } else {
        await quarantine.during(() => dialect.publishByReload(publication, signal));
        await dialect.unpinVersions(publication.keep ?? [], signal);
      }
    },

    async pinVersion(version, signal) {
      selector.forget();
      return dialect.pinVersion(version, signal);
    },
  };
}
