/** Passes connections of a child without network on to the control plane, and to nothing else. */

import { rmSync, writeFileSync } from 'node:fs'
import { createTunnels } from '../../../workspace/net/tunnel.ts'

/** Describes how the child reaches the control plane through the relay. */
export type RelayPlaces = {
  /** Path of the socket. */
  readonly socket: string
  /** The port at which the child finds the control plane, on 127.0.0.1: that of its address. */
  readonly port: number
  /** A file for /etc/hosts, in which the name of the control plane is 127.0.0.1. */
  readonly hosts: string
}

export type ControlRelay = RelayPlaces & {
  /** The base address for the child. The name stays, so that certificates and the Host header are right. */
  readonly apiUrl: string
  stop(): void
}

/** @returns why the relay cannot stand in for this address, as the end of a sentence; undefined when it can */
export function relayProblem(apiUrl: string): string | undefined {
  const url = new URL(apiUrl)
  if (url.protocol === 'https:' && !isName(hostOf(url)))
    return 'the address of the control plane is https with a number, for which 127.0.0.1 has no certificate; use its name'
  if (portOf(url) < 1_024 && process.getuid?.() !== 0) return 'the port of the control plane is below 1024, where only root may listen'
  return undefined
}

/** `folder` belongs to the run. @throws the system's error when the socket cannot be made */
export function openControlRelay(apiUrl: string, folder: string): ControlRelay {
  const url = new URL(apiUrl)
  const target = { host: hostOf(url), port: portOf(url) }
  const [socket, hosts] = [`${folder}/relay.sock`, `${folder}/hosts`]
  const hasName = isName(target.host)
  writeFileSync(hosts, `127.0.0.1 localhost\n${hasName && target.host !== 'localhost' ? `127.0.0.1 ${target.host}\n` : ''}`, {
    mode: 0o644,
  })
  const stop = listen(socket, target)
  const { protocol } = url
  return { socket, port: target.port, hosts, apiUrl: hasName ? apiUrl : `${protocol}//127.0.0.1:${target.port}`, stop }
}

function listen(socket: string, target: { readonly host: string; readonly port: number }): () => void {
  const tunnels = createTunnels({ judgeHost: () => undefined, judgeAddress: () => ({ ok: true }) })
  rmSync(socket, { force: true })
  const { stop } = tunnels.listen(socket, (inner) => {
    void tunnels.dial(target).then((dialled) => {
      if (!dialled.ok) return void inner.writable.abort().catch(() => {})
      const { connection } = dialled
      void inner.readable.pipeTo(connection.writable).catch(() => {})
      void connection.readable.pipeTo(inner.writable).catch(() => {})
    })
  })
  return stop
}

/** Tells whether a host is a name. A URL spells every IPv4 address as four numbers. */
function isName(host: string): boolean {
  return !/^[\d.]+$|:/.test(host)
}

function portOf({ port, protocol }: URL): number {
  return Number(port) || (protocol === 'https:' ? 443 : 80)
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}
