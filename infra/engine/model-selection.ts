import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { adaptersOf } from './adapters.ts';
import type { EngineConnection } from './connection.ts';
import { adapterPrefix, requireBaseVersion } from './labels.ts';

/** Time after which the list of adapters is read again, since another process publishes them. */
const adapterMaxAgeMs = 500;

/** The model name to send, and the policy version if the name determines it. */
export interface SelectedModel {
  readonly name: string;
  readonly version: number | null;
}

/** Selects the model that a request is sent to. */
export interface ModelSelector {
  /** Selects the newest version, or the wanted one. Throws VersionNotServed if adapters are loaded and the wanted one is not. */
  select(signal?: AbortSignal, wanted?: number): Promise<SelectedModel>;
  /** Drops the list of adapters, so that the next selection reads it again. */
  forget(): void;
}

export interface ModelSelectorOptions {
  readonly model: string;
  readonly policy: string | undefined;
  readonly method: 'reload' | 'lora';
  readonly baseVersion: number | null;
}

export function createModelSelector(connection: EngineConnection, options: ModelSelectorOptions): ModelSelector {
  const { model, policy, method, baseVersion } = options;
  const prefix = adapterPrefix(model, policy);
  let loaded: { readonly adapters: readonly SelectedModel[]; readonly readAt: number } | null = null;
  return {
    async select(signal, wanted) {
      if (method === 'reload' && wanted === undefined) return { name: model, version: null };
      if (loaded === null || performance.now() - loaded.readAt > adapterMaxAgeMs) {
        loaded = { adapters: await adaptersOf(connection, prefix, signal), readAt: performance.now() };
      }
      const versions = loaded.adapters.flatMap(({ version }) => version ?? []);
      const version = wanted ?? Math.max(...versions);
      const adapter = loaded.adapters.find((one) => one.version === version);
      if (adapter !== undefined) return { name: adapter.name, version };
      // Whole weights: the reply itself names the version that sampled it.
      if (method === 'reload') return { name: model, version: null };
      if (wanted === undefined || (versions.length === 0 && wanted === baseVersion)) {
        return { name: model, version: requireBaseVersion(baseVersion, connection.url) };
      }
      throw notServed(connection.url, wanted, versions);
    },
    forget() {
      loaded = null;
    },
  };
}

function notServed(where: string, wanted: number, versions: readonly number[]): TemperFailure {
  const got = versions.length === 0 ? 'none' : versions.join(', ');
  return new TemperFailure('VersionNotServed', `${where}: expected an adapter of policy version ${wanted}, got ${got}`);
}
