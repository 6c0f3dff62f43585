/** Provides a plane for tests of the routes: the methods that a test gives, and a failure for every other one. */

import type { Caller } from '../../../src/control/contract/caller.ts'
import type { Plane } from '../../../src/control/contract/plane.ts'
import { type ServedControl, serveControl } from '../../../src/control/server/serve-control.ts'

type Parts = { readonly [Part in keyof Plane]?: Plane[Part] extends (...args: never[]) => unknown ? Plane[Part] : Partial<Plane[Part]> }

/** Tokens: "operator", "agent" (sysadmin) and "run" (RUN-001 of sysadmin on TASK-001). */
export const callers: { readonly [token: string]: Caller } = {
  operator: { kind: 'operator', id: 'op1', name: 'anna' },
  agent: { kind: 'agent', id: 'sysadmin', role: 'sysadmin' },
  run: { kind: 'run', id: 'sysadmin', role: 'sysadmin', taskId: 'TASK-001', runId: 'RUN-001', attempt: 1 },
}

export function fakePlane(parts: Parts): Plane {
  const access = { callerOf: async (secret: string) => callers[secret], ...parts.access }
  const refuse = (name: string) => () => Promise.reject(new Error(`the test gives no ${name}`))
  const part = (given: object, at: string) =>
    new Proxy(given, { get: (target, name) => Reflect.get(target, name) ?? refuse(`${at}.${String(name)}`) })
  const all = { ...parts, access }
  return new Proxy({} as Plane, {
    get(_, name) {
      const given: unknown = Reflect.get(all, name)
      return typeof given === 'function' ? given : part(typeof given === 'object' && given ? given : {}, String(name))
    },
  })
}

export type Served = ServedControl & {
  readonly errors: string[]
  ask(path: string, init?: RequestInit & { readonly token?: string }): Promise<Response>
} & AsyncDisposable

/** Serves the plane on a free port of this machine. */
export function serve(parts: Parts, more: Partial<Parameters<typeof serveControl>[0]> = {}): Served {
  const errors: string[] = []
  const served = serveControl({
    plane: fakePlane(parts),
    version: '0',
    now: Date.now,
    log: (_level, event, fields) => void errors.push(`${event} ${JSON.stringify(fields)}`),
    host: '127.0.0.1',
    port: 0,
    allowedHosts: [],
    sharedSecret: 'shared',
    compatFrom: [],
    replies: { begin: () => ({ state: 'new' }), finish: () => {}, forget: () => {} },
    isReachable: () => true,
    ...more,
  })
  return {
    ...served,
    errors,
    ask: (path, { token = 'operator', ...init } = {}) =>
      fetch(`${served.url}${path.startsWith('/') ? path : `/api/controlplane/${path}`}`, {
        ...init,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...init.headers },
      }),
    [Symbol.asyncDispose]: () => served.close(100),
  }
}
