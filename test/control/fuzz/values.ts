/** Makes requests from the schemas of a document: right ones, and each with one value that is wrong or hostile. */

import type { Schema } from '../server/openapi-routes.ts'

/** Values that programs have stumbled over; each is tried in the place of each right one. */
export const hostile: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  1e308,
  2 ** 53,
  '',
  ' ',
  '0',
  '-1',
  'NaN',
  'x'.repeat(70_000),
  'a\0b',
  '\ud800',
  '\u202e\u2028\u0007\u001b[2J\u001b]0;x\u0007',
  '../../etc/passwd',
  "x'); DROP TABLE tasks; --",
  '$(touch /tmp/x) `id` ${HOME}',
  '<script>alert(1)</script>',
  '{{7*7}}',
  'TASK-001\r\nX-Injected: 1',
  'TASK-999999999999999',
  'TASK-9999999999999999999',
  'RUN-0',
  '__proto__',
  'constructor',
  '2026-13-45T99:99:99Z',
  '9999-12-31T23:59:59.999Z',
  '-271821-04-20T00:00:00.000Z',
  [],
  [[]],
  [null],
  {},
  { __proto__: null, constructor: { prototype: { polluted: true } } },
  { toString: 1, length: -1 },
]

/** A value that the schema accepts, as far as a schema says it. */
export function exampleOf(schema: Schema, name = ''): unknown {
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  const [first] = schema.oneOf ?? schema.anyOf ?? []
  if (first) return exampleOf(first, name)
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
  if (type === 'object') return objectOf(schema)
  if (type === 'array') return schema.items ? [exampleOf(schema.items, name)] : []
  if (type === 'integer' || type === 'number') return typeof schema.minimum === 'number' ? Math.max(1, schema.minimum) : 1
  if (type === 'boolean') return true
  return textOf(schema, name)
}

function objectOf({ properties = {} }: Schema): Record<string, unknown> {
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, exampleOf(schema, name)]))
}

const byName: { readonly [name: string]: string } = {
  task_id: 'TASK-001',
  parent_task_id: 'TASK-001',
  depends_on: 'TASK-001',
  run_id: 'RUN-001',
  approval_id: 'APPR-001',
  cron: '0 3 * * *',
  timezone: 'UTC',
  digest: 'a'.repeat(64),
}

function textOf({ format, pattern }: Schema, name: string): string {
  if (format === 'date-time') return '2026-04-07T10:30:00Z'
  if (byName[name] !== undefined) return byName[name]
  return pattern === undefined ? 'text' : 'sysadmin'
}

export type Variant = { readonly where: string; readonly body: unknown }

/** The right body with one field replaced, taken away or added, at each place of its first two levels. */
export function* variantsOf(right: unknown, values: readonly unknown[]): Generator<Variant> {
  for (const value of values) yield { where: 'the body', body: value }
  if (typeof right !== 'object' || right === null || Array.isArray(right)) return
  for (const name of Object.keys(right)) {
    const { [name]: own, ...rest } = right as Record<string, unknown>
    yield { where: `without ${name}`, body: rest }
    for (const value of values) yield { where: name, body: { ...rest, [name]: value } }
    if (Array.isArray(own)) for (const value of values) yield { where: `${name}[0]`, body: { ...rest, [name]: [value] } }
    else if (typeof own === 'object' && own !== null)
      for (const inner of Object.keys(own))
        for (const value of values) yield { where: `${name}.${inner}`, body: { ...rest, [name]: { ...own, [inner]: value } } }
  }
}
