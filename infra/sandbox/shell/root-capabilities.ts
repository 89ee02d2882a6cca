/**
 * The capabilities of root in a container whose task asks for root: those that package managers and services need. They are fewer
 * than Docker's own: no raw sockets, devices or capabilities for others.
 */
export const rootCapabilities = [
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETUID',
  'SYS_CHROOT',
] as const;
