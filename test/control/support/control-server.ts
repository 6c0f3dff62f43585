/** Runs a control plane in this process on a free port, with an operator, and talks to it. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ControlClient, createControlClient } from '../../../src/control/client/control-client.ts'
import { type OpenControlOptions, type OpenedControl, openControl } from '../../../src/control/server/open-control.ts'
import { sleep } from '../../../src/kit/abort.ts'

export type Answer = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: ReturnType<typeof JSON.parse>
}

export type Request = {
  readonly method?: string
  readonly body?: unknown
  /** Default: the operator's; null: none. */
  readonly token?: string | null
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

export type ControlUnderTest = AsyncDisposable & {
  readonly control: OpenedControl
  readonly url: string
  readonly port: number
  /** An operator token. */
  readonly operator: string
  readonly sharedSecret: string
  readonly home: string
  /** What went wrong inside; empty at the end of a good test. */
  readonly errors: readonly string[]
  /** Below /api/controlplane unless the path begins with a slash; POST when there is a body. */
  ask(path: string, request?: Request): Promise<Answer>
  client(token?: string): ControlClient
  /** Adds an agent and returns a key of it. */
  addAgent(id: string, role?: string): Promise<string>
}

export const sharedSecret = 'shared-secret-of-the-tests'
export const operatorToken = 'cpo_operator-token-of-the-tests'

export async function controlServer({
  home,
  env,
  ...options
}: Partial<OpenControlOptions> & { readonly home?: string } = {}): Promise<ControlUnderTest> {
  const folder = home ?? mkdtempSync(join(tmpdir(), 'control-'))
  const errors: string[] = []
  const control = await openControl({
    home: folder,
    port: 0,
    env: { CONTROLPLANE_SHARED_SECRET: sharedSecret, CONTROLPLANE_OPERATOR_TOKEN: operatorToken, ...env },
    log: (level, event, fields) => void (level === 'error' && errors.push(`${event} ${JSON.stringify(fields)}`)),
    ...options,
  })
  const asking = talkTo(control.url)
  return {
    ...{ control, url: control.url, port: control.port, operator: operatorToken, sharedSecret, home: folder, errors, ...asking },
    async addAgent(id, role = id) {
      const { fleet } = asking.client()
      await fleet.add({ id, role })
      return (await fleet.newKey(id)).key
    },
    async [Symbol.asyncDispose]() {
      await control.close()
      if (home === undefined) rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Talks to any control plane that knows the operator token of the tests. */
export function talkTo(url: string): Pick<ControlUnderTest, 'ask' | 'client'> {
  return {
    async ask(path, { method, body, token = operatorToken, headers = {}, signal } = {}) {
      const response = await fetch(path.startsWith('/') ? `${url}${path}` : `${url}/api/controlplane/${path}`, {
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal ? { signal } : {}),
        headers: {
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
      })
      const text = await response.text()
      return { status: response.status, headers: response.headers, text, body: jsonIn(text) }
    },
    client: (token = operatorToken) => createControlClient({ url, token: () => token, fetch, sleep, random: Math.random }),
  }
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
