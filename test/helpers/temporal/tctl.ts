import { fileURLToPath } from 'node:url';
import type { Executable, LocateOptions } from '../../../infra/temporal/cached-tool.ts';
import type { GoTool } from '../../../infra/temporal/go-tool.ts';
import { buildTool } from '../go-tools.ts';

const version = '1.18.0';

/** The older command-line client of Temporal, which users may still start workflows with. */
const tctl: GoTool = {
  name: 'tctl',
  module: fileURLToPath(new URL('./tctl', import.meta.url)),
  mainPackage: 'github.com/temporalio/tctl/cmd/tctl',
  linkerFlags: '-s -w',
  minutes: 2,
};

/** Finds the client in the cache, or builds it. */
export const locateTctl = (options: LocateOptions): Promise<Executable> => buildTool(tctl, version, options);
