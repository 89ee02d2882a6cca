import { basename, dirname } from 'node:path';
import { BuildError, FileUploadError, Template } from 'e2b';
import { SandboxFailure } from '../failure.ts';
import { sdkOptions } from './api.ts';
import { callApi } from './failures.ts';
import { programsDirectory } from './scripts.ts';
import type { E2bSettings } from './settings.ts';

export interface NewTemplate {
  readonly name: string;
  /** An image that the server can pull. */
  readonly image: string;
  /** The directory of the programs that temper runs in a sandbox, each under its name and version. */
  readonly programs: string;
  readonly cpus: number;
  readonly memoryMb: number;
}

/** The time of one request; the largest one uploads Node and the agents' programs. */
const requestTimeoutMs = 1_800_000;

/**
 * Has a server build the template of an image, and waits until it is built. A template of this name is replaced for the sandboxes
 * to come.
 */
export async function buildTemplate(
  settings: Pick<E2bSettings, 'url' | 'sandboxUrl' | 'apiKey'>,
  { name, image, programs, cpus, memoryMb }: NewTemplate,
  onLog: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const template = Template({ fileContextPath: dirname(programs) })
    .fromImage(image)
    .copy(basename(programs), programsDirectory, { user: 'root' });
  await callApi(`build template ${name}`, async () => {
    try {
      await Template.build(template, name, {
        ...(await sdkOptions(settings)),
        requestTimeoutMs,
        cpuCount: cpus,
        memoryMB: memoryMb,
        onBuildLogs: ({ message }) => onLog(message),
        signal,
      });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof BuildError) && !(error instanceof FileUploadError)) throw error;
      const text = `the server could not build template ${name} from ${image}; it must be able to pull that image`;
      throw new SandboxFailure('ImageUnavailable', text, { cause: error, evidence: error.message });
    }
  });
}
