/** Limits of one Docker host on getting images and creating containers. */
export interface DockerSettings {
  /** Maximum number of concurrent pulls; 0 disables pulling. */
  readonly pulls: number;
  /** Maximum number of concurrent builds; 0 disables building. */
  readonly builds: number;
  /** Maximum number of containers that are created concurrently. */
  readonly creates: number;
  /** Disk space in GB for the images that temper pulled or built; 0 means no limit. */
  readonly imageDiskGb: number;
  /** The network of build commands: `none`, or the name of a Docker network. */
  readonly buildNetwork: string;
  /** The OCI runtime of sandboxes, for example `crun`; empty for the daemon's own. */
  readonly runtime: string;
}

export const defaultDockerSettings: DockerSettings = {
  pulls: 3,
  builds: 2,
  creates: 4,
  imageDiskGb: 0,
  buildNetwork: 'none',
  runtime: '',
};
