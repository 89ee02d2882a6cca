import type { NetworkPolicy } from '../../workflows/contracts/network.ts';
import type { FileTree } from './file-tree.ts';

/** The repository of the images that infra/images/build.sh makes; no registry has them. */
export const shippedRepository = 'temper-tasks';
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

/** Progress of a pull or a build, as the activity's heartbeat reports it. */
export interface ImageProgress {
  readonly image: string;
  readonly doing: 'waiting for a free slot' | 'pulling' | 'building';
  /** The current step of a build: `2/5 RUN make`. */
  readonly step?: string;
  /** Completed and total layers of a pull: `3/7`. */
  readonly layers?: string;
  /** Downloaded and total megabytes of a pull: `12.5/80.0`. */
  readonly megabytes?: string;
}

export type ReportImage = (progress: ImageProgress) => void;

/** Classifies an image by its repository: temper's own images are in no registry. */
export function imageName(image: string): ImageName {
  const [repository] = image.split(/[:@]/);
  return { image, from: repository === shippedRepository || repository === builtRepository ? 'host' : 'registry' };
}
