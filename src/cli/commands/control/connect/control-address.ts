/** Decides which control plane a command talks to. */

import type { Environment } from '../../../../host/api.ts'
import { usageError } from '../../../exit.ts'

/** `origin`: the flag or variable that gave the address. */
export type ControlAddress = { readonly url: string; readonly origin: string; readonly encrypted: boolean }

/** @throws CliExit 2 unless it is the address of a server */
export function controlAddress(given: string | undefined, env: Environment): ControlAddress {
  const { text, origin } = chosen(given, env)
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw usageError(`${origin} ${JSON.stringify(text)} is no http(s) address; write one like http://127.0.0.1:3100`)
  if (url.username !== '' || url.password !== '')
    throw usageError(`${origin}: an address with a password is refused; the token comes from a file or CONTROLPLANE_OPERATOR_TOKEN`)
  if (url.search !== '' || url.hash !== '') throw usageError(`${origin} ${JSON.stringify(text)}: leave out what begins with "?" or "#"`)
  return {
    url: `${url.origin}${url.pathname.replace(/\/+$/, '')}`,
    origin,
    encrypted: url.protocol === 'https:' || isLoopback(url.hostname),
  }
}

function chosen(given: string | undefined, env: Environment): { readonly text: string; readonly origin: string } {
  if (given !== undefined) return { text: given, origin: '--url' }
  if (env.CONTROLPLANE_API_URL) return { text: env.CONTROLPLANE_API_URL, origin: 'CONTROLPLANE_API_URL' }
  const port = env.CONTROLPLANE_API_PORT
  return port
    ? { text: `http://127.0.0.1:${port}`, origin: 'CONTROLPLANE_API_PORT' }
    : { text: 'http://127.0.0.1:3100', origin: 'the default address' }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(host)
}
