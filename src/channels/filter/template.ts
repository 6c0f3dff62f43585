/** Reads the templates of the filter: YAML or TOML files in the home, with the keys that the program llm has for them. */

import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { parse, stringify } from 'yaml'
import { readConfigFile } from '../../config/text/read-toml-file.ts'
import { readToml } from '../../config/text/toml.ts'
import { FailureError } from '../../host/failure.ts'
import { attempt, errorText } from '../../kit/errors.ts'
import { isObject } from '../../kit/json.ts'
import { didYouMean, quote } from '../../kit/text.ts'

const texts = ['prompt', 'system', 'model'] as const
const tables = ['defaults', 'options'] as const
const switches = ['extract', 'extract_last'] as const
const keys = [...texts, ...tables, ...switches, 'schema', 'schema_object', 'name']

export type Template = { readonly [Key in (typeof texts)[number]]?: string } & {
  readonly [Key in (typeof tables)[number]]?: { readonly [name: string]: string }
} & { readonly [Key in (typeof switches)[number]]?: boolean } & { readonly schema?: string }

export type TemplateFile = { readonly name: string; readonly path: string; readonly text: string }

const endings = /\.(ya?ml|toml)$/

const folderOf = (home: string) => join(home, 'templates')

export function templatesIn(home: string): readonly { readonly name: string; readonly path: string }[] {
  const files = attempt(() => readdirSync(folderOf(home))) ?? []
  const named = files
    .filter((file) => endings.test(file))
    .map((file) => ({ name: file.replace(endings, ''), path: join(folderOf(home), file) }))
  return named.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** `given` is a name, or a path with a slash. @throws FailureError `usage` when there is none */
export function findTemplate(given: string, { home, cwd }: { readonly home: string; readonly cwd: string }): TemplateFile {
  const found = given.includes('/') ? { name: basename(given), path: resolve(cwd, given) } : named(given, home)
  const read = readConfigFile(found.path)
  if (read.state === 'text') return { ...found, text: read.text }
  throw new FailureError('usage', `the template ${found.path} ${read.state === 'missing' ? 'does not exist' : read.why}`)
}

function named(name: string, home: string) {
  const all = templatesIn(home)
  const found = all.find((each) => each.name === name)
  if (found) return found
  const names = all.map((each) => each.name)
  const there =
    names.length === 0
      ? `; there are none yet: braidclaw template new ${newName.test(name) ? name : 'NAME'}`
      : `; there are: ${names.join(', ')}`
  throw new FailureError('usage', `no template ${quote(name)}${didYouMean(name, names) || there}`)
}

/** @throws FailureError `usage` that names every key that is wrong */
export function readTemplate({ path, text }: TemplateFile): Template {
  const data = dataOf(path, text)
  if (typeof data === 'string') return { prompt: data }
  if (!isObject(data)) throw new FailureError('usage', `${path}: a template is a table with keys such as prompt and system`)
  const wrong = Object.entries(data).flatMap(([key, value]) => flawOf(key, value) ?? [])
  if (wrong.length > 0)
    throw new FailureError(
      'usage',
      wrong.map((flaw) => `${path}: ${flaw}`),
    )
  const asTexts = (table: unknown) => Object.fromEntries(Object.entries(table ?? {}).map(([name, value]) => [name, String(value)]))
  const schema = data.schema ?? data.schema_object
  return {
    ...data,
    defaults: asTexts(data.defaults),
    options: asTexts(data.options),
    ...(schema !== undefined && { schema: typeof schema === 'string' ? schema : JSON.stringify(schema) }),
  }
}

function dataOf(path: string, text: string): unknown {
  if (!path.endsWith('.toml')) {
    try {
      return parse(text, { prettyErrors: false, logLevel: 'error', maxAliasCount: 100 })
    } catch (error) {
      throw new FailureError('usage', `${path}: ${errorText(error).split('\n')[0]}`)
    }
  }
  const { data, problems } = readToml(text)
  if (problems.length > 0)
    throw new FailureError(
      'usage',
      problems.map(({ line, message }) => `${path}:${line}: ${message}`),
    )
  return data
}

function flawOf(key: string, value: unknown): string | undefined {
  const isOf = (names: readonly string[]) => names.includes(key)
  if (!isOf(keys)) return `no key ${quote(key)}${didYouMean(key, keys) || `; there are: ${keys.join(', ')}`}`
  if (isOf(texts) && typeof value !== 'string') return `${key} must be a text`
  if (isOf(switches) && typeof value !== 'boolean') return `${key} must be true or false`
  if (key.startsWith('schema') && typeof value !== 'string' && !isObject(value)) return `${key} must be a schema`
  if (!isOf(tables) || (isObject(value) && Object.values(value).every((each) => typeof each !== 'object'))) return undefined
  return `${key} must be a table of texts and numbers`
}

/**
 * Returns prompt and system with their variables filled in; `$input` is the question. A prompt without `$input` gets it at its end.
 * @throws FailureError `usage` for a variable without a value, and a value without a variable
 */
export function fillTemplate({ prompt, system, defaults }: Template, input: string, params: { readonly [name: string]: string }) {
  const used = new Set([...variablesIn(prompt), ...variablesIn(system)])
  const odd = Object.keys(params).filter((name) => name === 'input' || !used.has(name))
  const missing = [...used].filter((name) => name !== 'input' && !Object.hasOwn({ ...defaults, ...params }, name))
  const flaws = [
    ...odd.map((name) => `--param ${name}: the template has no such variable${didYouMean(name, [...used])}`),
    ...missing.map((name) => `the template needs a value: --param ${name}=…`),
  ]
  if (flaws.length > 0) throw new FailureError('usage', flaws)
  const values = { ...defaults, ...params, input }
  const whole = prompt === undefined ? input : filled(prompt, values)
  const isUsed = used.has('input') || prompt === undefined || input === ''
  return { prompt: isUsed ? whole : `${whole.trimEnd()}\n\n${input}`, system: system && filled(system, values) }
}

/** As in llm: `$name`, `${name}`, and `$$` for a dollar sign. */
const variable = /\$(?:\$|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})/g

function variablesIn(text = ''): readonly string[] {
  return [...text.matchAll(variable)].flatMap(([, name, braced]) => name ?? braced ?? [])
}

function filled(text: string, values: { readonly [name: string]: string }): string {
  return text.replace(variable, (_, name?: string, braced?: string) => values[name ?? braced ?? ''] ?? '$')
}

const newName = /^[A-Za-z0-9][\w-]{0,63}$/

/** Writes a new template, for its owner alone. @returns its path @throws FailureError `usage` for a name that is wrong, or taken */
export function writeTemplate(home: string, name: string, template: Template): string {
  if (!newName.test(name)) throw new FailureError('usage', `${quote(name)} must be a name: letters, digits, "-" and "_"`)
  if (templatesIn(home).some((each) => each.name === name))
    throw new FailureError('usage', `the template ${quote(name)} exists already; to change it: braidclaw template edit ${name}`)
  const path = join(folderOf(home), `${name}.yaml`)
  mkdirSync(folderOf(home), { recursive: true, mode: 0o700 })
  writeFileSync(path, stringify(template), { flag: 'wx', mode: 0o600 })
  return path
}
