import type { Engine } from './engine.ts';

/** Which policy versions an engine serves: what is sampled by where nothing else is asked for, and all that can be. */
export async function servingOf(engine: Pick<Engine, 'health'>): Promise<{
  readonly version: number | null;
  readonly versions: readonly number[];
}> {
  const { version, versions } = await engine.health();
  return { version, versions: versions ?? (version === null ? [] : [version]) };
}
