import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { locateWorkflowBundle } from '../../../infra/temporal/bundle.ts';

/**
 * Returns the workflows as a worker loads them, with one module (a path below `workflows/`) changed. `change` sees the module
 * as the bundle holds it, without types; the bundle is not built again, which would take seconds. `code`: a bundle in which
 * another module was changed.
 */
export async function bundleChanged(
  file: string,
  change: (module: string) => string,
  { code }: { readonly code?: string } = {},
): Promise<{ readonly code: string }> {
  const { codePath } = await locateWorkflowBundle(process.env);
  const bundle = code ?? (await readFile(codePath, 'utf8'));
  const begin = bundle.indexOf(`\n/***/ "./workflows/${file}"\n`);
  assert.ok(begin >= 0, `expected the bundle to hold ${file}`);
  const end = bundle.indexOf('\n/***/ "', begin + 1);
  const module = bundle.slice(begin, end);
  const changed = change(module);
  assert.notEqual(changed, module, `expected ${file} to hold what is to be changed`);
  return { code: `${bundle.slice(0, begin)}${changed}${bundle.slice(end)}` };
}

/**
 * Changes activity-options.ts so that no stage begins again for want of heartbeats, for as long as a test holds it or its process
 * stands still.
 */
export const withoutHeartbeats = (module: string): string =>
  module.replaceAll(/heartbeatTimeout: '\d+s'/g, "heartbeatTimeout: '1h'");

/**
 * Changes activity-options.ts so that a stage begins again soon if a busy server noted its start and did not give it to the worker,
 * which it does when the note takes a second. Evaluations have longer, since scripted ones send no heartbeats.
 */
export const findLostSoon = (module: string): string =>
  module
    .replace("heartbeatTimeout: '4m'", "heartbeatTimeout: '30s'")
    .replace(/(seal: \{\s+scheduleToStartTimeout: '5m',\s+startToCloseTimeout: )'2m'/, "$1'30s'")
    .replace(/(evaluate: \{\s+heartbeatTimeout: )'15s'/, "$1'5m'")
    .replaceAll("heartbeatTimeout: '15s'", "heartbeatTimeout: '30s'");
