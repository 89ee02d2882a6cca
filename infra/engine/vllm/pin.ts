import { adaptersOf, modelsOf, unloadAdapter } from '../adapters.ts';
import { type EngineConnection, engineTimeouts } from '../connection.ts';
import { adapterName, versionOfLabel } from '../labels.ts';
import { adapterRoutes, labelOf } from './publish.ts';

/** Time before the publishing process learns of a pin, during which a publication must not unload it. */
const graceSeconds = 120;
/** The `owned_by` of the embedded policy, the only server whose adapters may be whole weights. */
const embeddedPolicyOwner = 'temper';

interface VersionToPin {
  readonly model: string;
  readonly policy: string | undefined;
  /** The beginning of the names of the policy's pinned versions. */
  readonly prefix: string;
  readonly version: number;
}

/**
 * Keeps the weights in service loaded, under the name of their version, beside those that are published later. Returns false
 * when other weights are in service, or when the server cannot: vLLM's own adapters are not whole weights.
 */
export async function pinWeights(
  connection: EngineConnection,
  { model, policy, prefix, version }: VersionToPin,
  signal?: AbortSignal,
): Promise<boolean> {
  const serves = () => isServed(connection, { policy, version }, signal);
  const wasServed = await serves();
  const { data } = await modelsOf(connection, signal);
  const base = data.find(({ id }) => id === model);
  if (base?.owned_by !== embeddedPolicyOwner) return false;
  const name = adapterName(prefix, version);
  const pinned = data.find(({ id }) => id === name);
  // The path is checked before and after: if another version was published, the base model's path is the path of that one.
  const stillServed = wasServed && (await serves());
  const path = stillServed ? base.root : pinned?.root;
  if (typeof path !== 'string') return false;
  // A pinned version is pinned again, which restarts the grace time for a caller that the publisher does not know yet.
  const body = { lora_name: name, lora_path: path };
  const { status } = await connection.post(adapterRoutes.load, body, engineTimeouts.updateMs, signal);
  return status === 200;
}

async function isServed(
  connection: EngineConnection,
  { policy, version }: Pick<VersionToPin, 'policy' | 'version'>,
  signal?: AbortSignal,
): Promise<boolean> {
  const label = await labelOf(connection, signal);
  return label !== null && versionOfLabel(label, policy) === version;
}

/** Unloads pinned versions that are not to be kept and were not pinned just now. */
export async function unpinWeights(
  connection: EngineConnection,
  { prefix, keep }: { readonly prefix: string; readonly keep: readonly number[] },
  signal?: AbortSignal,
  nowMs = Date.now(),
): Promise<void> {
  const graceStart = nowMs / 1000 - graceSeconds;
  for (const { name, version, loadedAt } of await adaptersOf(connection, prefix, signal)) {
    const isNew = loadedAt !== null && loadedAt > graceStart;
    if (!keep.includes(version) && !isNew) await unloadAdapter(connection, adapterRoutes, name, signal);
  }
}
