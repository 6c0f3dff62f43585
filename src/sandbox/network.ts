/** The one way out of a sandbox with listed hosts: a proxy of ours on a socket, and socat inside to reach it. */

import { join } from 'node:path'
import { fixedPath } from './install.ts'
import type { SandboxSettings } from './port.ts'
import { createProxy } from './proxy.ts'

export type WayOut =
  | {
      readonly ok: true
      readonly mounts: readonly string[]
      /** Stands before the command's own words. */
      readonly prologue: readonly string[]
      readonly env: { readonly [name: string]: string }
      stop(): void
    }
  | { readonly ok: false; readonly missing: string }

const PORT = 3128
const INSIDE = '/run/proxy.sock'

/** Waits until socat listens (0C38 is 3128 in the kernel's table), so that the command's first connection does not fail. */
const prologue = `socat TCP-LISTEN:${PORT},bind=127.0.0.1,fork,reuseaddr UNIX-CONNECT:${INSIDE} >/dev/null 2>&1 &
until grep -q ':0C38 .* 0A ' /proc/net/tcp; do kill -0 $! 2>/dev/null || { echo 'the proxy inside did not start' >&2; exit 126; }; sleep 0.01; done
exec "$@"`

export function joinNetwork({ settings, folder }: { readonly settings: SandboxSettings; readonly folder: string }): WayOut {
  const { allowedDomains, network, log } = settings
  if (allowedDomains.length === 0) return { ok: true, mounts: [], prologue: [], env: {}, stop() {} }
  if (network === undefined) return { ok: false, missing: 'allowed_domains is set, but this program was built without a way to reach them' }
  if (Bun.which('socat', { PATH: fixedPath }) === null)
    return { ok: false, missing: 'allowed_domains needs socat inside the sandbox; install the package "socat", or empty allowed_domains' }
  const socket = join(folder, 'proxy.sock')
  const { stop } = network.listen(socket, createProxy({ allowedDomains, dial: network.dial, log }))
  const url = `http://127.0.0.1:${PORT}`
  const names = ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY']
  const none = { no_proxy: 'localhost,127.0.0.1', NO_PROXY: 'localhost,127.0.0.1' }
  return {
    ok: true,
    mounts: ['--ro-bind', socket, INSIDE],
    prologue: ['/bin/sh', '-c', prologue, 'sh'],
    env: { ...Object.fromEntries(names.map((name) => [name, url])), ...none },
    stop,
  }
}
