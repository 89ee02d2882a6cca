/** Ports of the loopback device of a sandbox at which the relay listens. */
export const loopbackPorts = {
  gateway: 8080,
  /** The gateway's port in a sandbox that shares its device with services, many of which listen on the usual one. */
  gatewayBesideServices: 47_080,
  egress: 8118,
} as const;
