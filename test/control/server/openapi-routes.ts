/** Reads the routes of a control plane from its own /openapi.json, so that tests see every route there is. */

import type { ControlUnderTest } from '../support/control-server.ts'

export type Schema = { readonly [name: string]: unknown } & {
  readonly type?: string | readonly string[]
  readonly properties?: { readonly [name: string]: Schema }
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly enum?: readonly unknown[]
  readonly oneOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly const?: unknown
}

export type Parameter = {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: boolean
  readonly schema: Schema
}

export type Route = {
  /** As in who-may.ts: `GET /tasks/{id}`; `GET metrics` outside of the API. */
  readonly name: string
  readonly method: string
  readonly path: string
  /** Who may use it, as the document says; empty: everybody. */
  readonly callers: readonly string[]
  readonly parameters: readonly Parameter[]
  readonly body?: Schema
}

type Operation = {
  readonly security: readonly { readonly bearer?: readonly string[] }[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: { readonly 'application/json'?: { readonly schema: Schema } } }
}

const prefix = '/api/controlplane'

export async function routesOf(control: Pick<ControlUnderTest, 'ask'>): Promise<readonly Route[]> {
  const { body } = await control.ask('/openapi.json')
  const paths: { readonly [path: string]: { readonly [method: string]: Operation } } = body.paths
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { security, parameters = [], requestBody }]) => {
      const schema = requestBody?.content['application/json']?.schema
      return {
        name: `${method.toUpperCase()} ${path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path.slice(1)}`,
        method: method.toUpperCase(),
        path,
        callers: security[0]?.bearer ?? [],
        parameters,
        ...(schema ? { body: schema } : {}),
      }
    }),
  )
}

/** Replaces `{id}` and its like. */
export function filled(path: string, values: { readonly [name: string]: string }): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? 'x'))
}
