/** Defines JSON values, schemas of objects, and canonical text (RFC 8785): every hash in the program is computed over this text. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

export type JsonObject = { readonly [key: string]: Json }

/**
 * Returns the RFC 8785 text of a JSON value: keys sorted by UTF-16 code unit, no white space, ECMAScript numbers. It omits keys whose value
 * is `undefined`, as JSON.stringify does.
 * @throws TypeError on NaN, Infinity, functions, bigints, class instances (Date, Map) and lone surrogates: they have no canonical form.
 */
export function canonical(value: unknown): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return canonicalText(value)
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new TypeError(`no canonical JSON for ${value}`)
    return JSON.stringify(value)
  }
  if (Array.isArray(value)) return list(value)
  if (typeof value === 'object' && isPlain(value)) {
    return record(value)
  }
  throw new TypeError(`no canonical JSON for a ${value instanceof Object ? value.constructor.name : typeof value}`)
}

function record(value: object): string {
  const members: string[] = []
  for (const [key, member] of Object.entries(value).sort(byKey))
    if (member !== undefined) members.push(`${canonicalText(key)}:${canonical(member)}`)
  return `{${members.join(',')}}`
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

/** Holes and undefined become null, as in JSON.stringify. */
function list(values: readonly unknown[]): string {
  const items: string[] = []
  for (const value of values) items.push(canonical(value ?? null))
  return `[${items.join(',')}]`
}

/** Returns a string as canonical JSON. @throws TypeError when it contains a lone surrogate */
export function canonicalText(value: string): string {
  if (!value.isWellFormed()) throw new TypeError('no canonical JSON for a string with a lone surrogate')
  return JSON.stringify(value)
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Applies `change` to every text in plain JSON, including member names. Returns the identical value if nothing changes. */
export function changeTexts<T>(json: T, change: (text: string) => string): T
export function changeTexts(json: unknown, change: (text: string) => string): unknown {
  if (typeof json === 'string') return change(json)
  if (Array.isArray(json)) {
    const items = json.map((item: unknown) => changeTexts(item, change))
    return items.some((item, at) => item !== json[at]) ? items : json
  }
  if (!isObject(json)) return json
  let same = true
  const members: [string, unknown][] = []
  for (const [key, member] of Object.entries(json)) {
    const changed: [string, unknown] = [change(key), changeTexts(member, change)]
    same &&= changed[0] === key && changed[1] === member
    members.push(changed)
  }
  return same ? json : Object.fromEntries(members)
}

/** Narrows a value that is known to be JSON, such as one that was just parsed. */
export function isJsonObject(value: unknown): value is JsonObject {
  return isObject(value)
}

export function isObject(value: unknown): value is { [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the JSON Schema of an object with these members and no others, of which the `required` ones must be there. */
export function objectSchema<const P extends JsonObject, const Name extends keyof P & string = never>(properties: P, ...required: Name[]) {
  return { type: 'object', properties, ...(required.length > 0 && { required }), additionalProperties: false } as const
}

/** Parses JSON; undefined if the text is not valid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
