/** The image that a task's sandboxes are made of, and where a host gets it from. */
import type { FileTree } from './files.ts';

/** Made by infra/images/build.sh: no registry has its images. */
export const shippedRepository = 'temper-tasks';
/** Built from Dockerfiles of tasks. */
export const builtRepository = 'temper-built';

/** What a Dockerfile is built from. Nobody vouches for any of it. */
export interface BuildContext {
  /** Files of the context; among them `Dockerfile`. */
  readonly files: FileTree;
  /** Images that it begins with or copies from. */
  readonly bases: readonly ImageName[];
  /** Lines behind which what follows belongs to another image, counted from 1: where a stage has begun. */
  readonly stageLines: readonly number[];
  readonly timeoutSec: number;
}

/** An image that a registry may have, or that nobody but this host can. */
export interface ImageName {
  readonly image: string;
  readonly from: 'host' | 'registry';
}

/** What a task needs. The name of a built image says what it is built from, and so is the same on every host. */
export interface ImageRequest {
  readonly task: string;
  readonly image: string;
  readonly source: 'host' | 'registry' | BuildContext;
}

/** How far it is, for whoever looks at the activity. */
export interface ImageProgress {
  readonly image: string;
  readonly doing: 'waiting for others' | 'pulling' | 'building';
  /** Of the build: `2/5 RUN make`. */
  readonly step?: string;
  /** Of the pull. */
  readonly layers?: string;
  readonly megabytes?: string;
}

export type ReportImage = (progress: ImageProgress) => void;

/** Names without a tag mean the newest; ours are in no registry. */
export function imageName(image: string): ImageName {
  const [repository] = image.split(/[:@]/);
  return { image, from: repository === shippedRepository || repository === builtRepository ? 'host' : 'registry' };
}
