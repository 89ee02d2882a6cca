/** What a host gives to images and new containers. */
export interface DockerLimits {
  /** Pulls at once; 0: nothing is pulled. */
  readonly pulls: number;
  /** Builds at once; 0: nothing is built. */
  readonly builds: number;
  /** Containers that are made at once. */
  readonly creates: number;
  /** What the images that temper brought may take of the disk, in GB; 0: any. */
  readonly imageDiskGb: number;
  /** Of the commands of a build: `none`, or the name of a Docker network. */
  readonly buildNetwork: string;
}

export const defaultLimits: DockerLimits = { pulls: 3, builds: 2, creates: 4, imageDiskGb: 0, buildNetwork: 'none' };
