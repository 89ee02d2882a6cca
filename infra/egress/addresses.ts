import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';

/** The IPv4 networks that are not public, and single addresses of clouds that only look so. */
const refused4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
  // Azure's platform, which serves secrets of the machine.
  '168.63.129.16/32',
];
/** The parts of the public IPv6 network that are for documentation, or lead to an IPv4 address. */
const refused6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];

const refused = new BlockList();
for (const network of refused4) addTo(refused, network, 'ipv4');
for (const network of refused6) addTo(refused, network, 'ipv6');
const public6 = new BlockList();
addTo(public6, '2000::/3', 'ipv6');

function addTo(list: BlockList, network: string, family: 'ipv4' | 'ipv6'): void {
  const [address = '', bits] = network.split('/');
  list.addSubnet(address, Number(bits), family);
}

/**
 * Whether an address is closed to every sandbox. Only public addresses are open, except those of this machine; a text that is
 * not an address is closed. An IPv6 address that contains an IPv4 one is outside of the public IPv6 network, so it is closed, too.
 */
export function isRefused(address: string): boolean {
  if (isIPv4(address)) return refused.check(address, 'ipv4') || isOwn(address);
  if (!isIPv6(address) || !public6.check(address, 'ipv6')) return true;
  return refused.check(address, 'ipv6') || isOwn(address);
}

/** Whether an address belongs to this machine, whose own services may listen there. */
function isOwn(address: string): boolean {
  const own = new BlockList();
  for (const { address: one, family } of Object.values(networkInterfaces()).flatMap((all) => all ?? [])) {
    own.addAddress(one, family === 'IPv4' ? 'ipv4' : 'ipv6');
  }
  return own.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
}
