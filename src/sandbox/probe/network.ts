/** Lists attempts to reach a network peer outside the sandbox. */

import { join } from 'node:path'
import { callVerdict, type EscapeAttempt, perl, verdict } from './attempt.ts'

const SETTLE_MS = 20
const AF_VSOCK = 40

/** The client for the server outside; the server reports each connection. */
const tcp =
  'use Socket; use IO::Handle; my $to = inet_aton($ARGV[0]) or no_("resolve"); socket(my $s, PF_INET, SOCK_STREAM, 0) or no_("socket"); connect($s, sockaddr_in($ARGV[1], $to)) or no_("connect"); print "connected\n"'
const unix =
  'use Socket; socket(my $s, PF_UNIX, SOCK_STREAM, 0) or no_("socket"); $ARGV[0] =~ s/^@/\\0/; connect($s, pack_sockaddr_un($ARGV[0])) or no_("connect"); print "connected\n"'

export const networkAttempts: readonly EscapeAttempt[] = [
  door({ name: 'reach a server by name', door: 'tcp', argv: ({ outside }) => perl(tcp, 'localhost', String(outside.port)) }),
  door({ name: 'reach a server by address', door: 'tcp', argv: ({ outside }) => perl(tcp, '127.0.0.1', String(outside.port)) }),
  door({
    name: 'reach a server through the proxy, if there is one',
    door: 'tcp',
    argv: ({ outside }) =>
      perl(
        `${tcp}; $s->autoflush(1); print $s "CONNECT 127.0.0.1:$ARGV[2] HTTP/1.1\\r\\n\\r\\n"; my $answer = <$s>; print $answer =~ / 200 / ? "through\\n" : "proxy: $answer"`,
        '127.0.0.1',
        '3128',
        String(outside.port),
      ),
    through: 'through',
  }),
  door({ name: 'reach an abstract socket', door: 'abstract', argv: ({ outside }) => perl(unix, `@${outside.abstractName}`) }),
  door({
    name: 'reach a socket in a folder outside',
    door: 'outside',
    argv: ({ ground }) => perl(unix, join(ground.outside, 'socket')),
    layer: 'mount namespace',
  }),
  door({
    name: 'reach a socket in the workspace',
    door: 'workspace',
    argv: ({ ground }) => perl(unix, join(ground.settings.workspace, 'socket')),
    layer: 'seccomp',
  }),
  {
    name: 'make a pair of sockets that can send to any other',
    needs: ['perl'],
    argv: () => perl('use Socket; socketpair(my $a, my $b, PF_UNIX, SOCK_DGRAM, 0) or no_("socketpair"); print "made\n"'),
    judge: (seen) => verdict(seen, seen.output.includes('made'), 'seccomp'),
  },
  {
    name: 'open a socket to the machine below (vsock)',
    needs: ['perl'],
    argv: () => perl(`socket(my $s, ${AF_VSOCK}, 1, 0) or no_("socket"); print "made\n"`),
    judge: (seen) => callVerdict(seen, seen.output.includes('made'), 'network namespace'),
  },
]

type Door = {
  readonly name: string
  readonly door: string
  /** `network namespace` by default. */
  readonly layer?: 'mount namespace' | 'seccomp'
  /** The output of a successful attempt; `connected` by default. */
  readonly through?: string
  argv: EscapeAttempt['argv']
}

/** Checks both the output and the server's record, which names the door of each connection. */
function door({ name, door, argv, layer, through = 'connected' }: Door): EscapeAttempt {
  return {
    name,
    needs: ['perl'],
    argv,
    judge: async (seen) => {
      await Bun.sleep(SETTLE_MS)
      const came = seen.output.includes(through) && seen.field.outside.visits().includes(door)
      return callVerdict(seen, came, layer ?? 'network namespace')
    },
  }
}
