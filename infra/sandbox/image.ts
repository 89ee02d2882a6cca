import { z } from 'zod';
import type { NetworkPolicy } from '../../workflows/contracts/network.ts';
import type { FileTree } from './file-tree.ts';

/** The repository of the images that infra/images/build.sh makes; no registry has them. */
const shippedRepository = 'temper-tasks';
/** The repository of the images that are built from tasks' Dockerfiles. */
export const builtRepository = 'temper-built';

/** The input of a Dockerfile's build. All of it is untrusted. */
export interface BuildContext {
  /** Files of the context, including `Dockerfile`. */
  readonly files: FileTree;
  /** Scripts that its commands run, where the Dockerfile has them in another form than its author wrote. */
  readonly scripts: readonly string[];
  /** Images that the Dockerfile starts from or copies from. */
  readonly bases: readonly ImageName[];
  /** Numbers of the lines that begin a stage, counted from 1. */
  readonly stageLines: readonly number[];
  /** Lines that the build has behind those of the Dockerfile. Default: none. */
  readonly lastLines?: readonly string[];
  readonly timeoutSec: number;
  /** The hosts that its commands may reach, as far as the operator allows it. Default: none. */
  readonly network?: NetworkPolicy;
}

/** The name of an image, and whether it comes from a registry or exists only on hosts that built it. */
export interface ImageName {
  readonly image: string;
  readonly from: 'host' | 'registry';
}

/** The image that a task needs. The name of a built image derives from its build context and is the same on every host. */
export interface ImageRequest {
  readonly task: string;
  readonly image: string;
  readonly source: 'host' | 'registry' | BuildContext;
}

/** The wait of a sandbox for its image, or progress of a pull or a build, as the activity's heartbeat reports it. */
const imageProgress = z.object({
  image: z.string(),
  doing: z.enum(['waiting for a free slot', 'waiting for a node', 'pulling', 'building', 'starting', 'ready']),
  /** The current step of a build: `2/5 RUN make`. */
  step: z.string().exactOptional(),
  /** Completed and total layers of a pull: `3/7`. Absent where a node pulls, which tells neither layers nor megabytes. */
  layers: z.string().exactOptional(),
  /** Downloaded and total megabytes of a pull: `12.5/80.0`. */
  megabytes: z.string().exactOptional(),
  /** The time at which this began, by the clock of the cluster. */
  since: z.iso.datetime().exactOptional(),
  /** The last words of the cluster about it. */
  says: z.string().exactOptional(),
});
export type ImageProgress = Readonly<z.infer<typeof imageProgress>>;

/** Reads a report from the details of a heartbeat. Undefined if they hold something else. */
export function readImageProgress(details: unknown): ImageProgress | undefined {
  return imageProgress.safeParse(details).data;
}

/** Formats a report as one line: `pulling python:3.12-slim, 3/7 layers, 12.5/80.0 MB`. */
export function imageProgressText(
  { image, doing, step, layers, megabytes, since, says }: ImageProgress,
  nowMs = Date.now(),
): string {
  const details = [
    step,
    layers && `${layers} layers`,
    megabytes && `${megabytes} MB`,
    since && `for ${Math.max(0, Math.round((nowMs - Date.parse(since)) / 1000))} s`,
    says,
  ];
  return [texts[doing](image), ...details].filter(Boolean).join(', ');
}

const texts: Readonly<Record<ImageProgress['doing'], (image: string) => string>> = {
  'waiting for a free slot': (image) => `waiting for a free slot to pull or build ${image}`,
  'waiting for a node': () => 'waiting for a node with room',
  pulling: (image) => `pulling ${image}`,
  building: (image) => `building ${image}`,
  starting: (image) => `starting a container of ${image}`,
  ready: (image) => `${image} is there`,
};

export type ReportImage = (progress: ImageProgress) => void;

/** Classifies an image by its repository: temper's own images are in no registry. */
export function imageName(image: string): ImageName {
  const [repository] = image.split(/[:@]/);
  return { image, from: repository === shippedRepository || repository === builtRepository ? 'host' : 'registry' };
}
