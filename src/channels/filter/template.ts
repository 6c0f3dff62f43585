/** Reads the templates of the filter: YAML files in the home, with the keys that the program llm has for them. */

import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parse, stringify } from 'yaml'
import { readConfigFile } from '../../config/text/read-toml-file.ts'
import { FailureError } from '../../host/failure.ts'
import { attempt, errorText } from '../../kit/errors.ts'
import { isJsonObject } from '../../kit/json.ts'
import { didYouMean, quote } from '../../kit/text.ts'
import { createValidator } from '../../security/arguments/tool-arguments.ts'

type TemplateValues = { readonly [name: string]: string }

export type Template = { readonly [Key in 'prompt' | 'system' | 'model' | 'schema']?: string } & {
  readonly [Key in 'defaults' | 'options']?: TemplateValues
} & { readonly [Key in 'extract' | 'extract_last']?: boolean }

type TemplateFile = Readonly<Record<'path' | 'text', string>>

const ending = /\.ya?ml$/

export function templatesIn(home: string): readonly { readonly name: string; readonly path: string }[] {
  const files = attempt(() => readdirSync(join(home, 'templates')))?.filter((file) => ending.test(file)) ?? []
  return files.toSorted().map((file) => ({ name: file.replace(ending, ''), path: join(home, 'templates', file) }))
}

/** `given` is a name, or a path with a slash. @throws FailureError `usage` when there is none */
export function findTemplate(given: string, { home, cwd }: { readonly home: string; readonly cwd: string }): TemplateFile {
  const all = templatesIn(home)
  const path = given.includes('/') ? resolve(cwd, given) : all.find(({ name }) => name === given)?.path
  const read = path === undefined ? undefined : readConfigFile(path)
  if (path !== undefined && read?.state === 'text') return { path, text: read.text }
  if (path !== undefined) throw wrong(path, read?.state === 'unusable' ? `this file ${read.why}` : 'this file does not exist')
  const names = all.map(({ name }) => name)
  const there = names.length === 0 ? '; to make one: braidclaw template new NAME' : `; there are: ${names.join(', ')}`
  throw new FailureError('usage', `no template ${quote(given)}${didYouMean(given, names) || there}`)
}

function wrong(path: string, why: string): FailureError {
  return new FailureError('usage', `${path}: ${why}`)
}

const [text, flag, table] = [
  { type: 'string' },
  { type: 'boolean' },
  { type: 'object', additionalProperties: { type: ['string', 'number', 'boolean'] } },
]
const form = {
  type: 'object',
  additionalProperties: false,
  properties: {
    ...{ prompt: text, system: text, model: text, name: text, defaults: table, options: table, extract: flag, extract_last: flag },
    ...{ schema: { type: ['string', 'object'] }, schema_object: { type: 'object' } },
  },
} as const

/** @throws FailureError `usage` that names every key that is wrong */
export async function readTemplate({ path, text }: TemplateFile): Promise<Template> {
  const read = yamlOf(path, text)
  if (!isJsonObject(read)) throw wrong(path, 'a template is a table with keys such as prompt and system')
  const fits = await createValidator()(form, read)
  if (!fits.ok) throw wrong(path, fits.message)
  const { schema_object: object, schema = object, defaults, options, name: _, ...rest } = read
  const asTexts = (values: unknown) => Object.fromEntries(Object.entries(values ?? {}).map(([name, value]) => [name, String(value)]))
  const asText = schema === undefined ? {} : { schema: typeof schema === 'string' ? schema : JSON.stringify(schema) }
  return { ...rest, defaults: asTexts(defaults), options: asTexts(options), ...asText }
}

/** A text alone is the prompt. */
function yamlOf(path: string, text: string): unknown {
  try {
    const read: unknown = parse(text, { prettyErrors: false, logLevel: 'error', maxAliasCount: 100 })
    return typeof read === 'string' ? { prompt: read } : read
  } catch (error) {
    throw wrong(path, errorText(error))
  }
}

/**
 * Returns prompt and system with their variables filled in; `$input` is the question. A prompt without `$input` gets it at its end.
 * @throws FailureError `usage` for a variable without a value, and a value without a variable
 */
export function fillTemplate({ prompt = '$input', system = '', defaults }: Template, input: string, params: TemplateValues) {
  const used = new Set([...`${prompt} ${system}`.matchAll(variable)].flatMap(([, name, braced]) => name ?? braced ?? []))
  const values: TemplateValues = { ...defaults, ...params, input }
  const odd = Object.keys(params).filter((name) => name === 'input' || !used.has(name))
  const missing = [...used].filter((name) => !Object.hasOwn(values, name))
  const flaws = [
    ...odd.map((name) => `--param ${name}: the template has no such variable${didYouMean(name, [...used])}`),
    ...missing.map((name) => `the template needs a value: --param ${name}=…`),
  ]
  if (flaws.length > 0) throw new FailureError('usage', flaws)
  const filled = (text: string) => text.replace(variable, (_, name = '', braced = name) => values[name || braced] ?? '$')
  const whole = filled(prompt)
  return { prompt: used.has('input') || input === '' ? whole : `${whole.trimEnd()}\n\n${input}`, system: filled(system) || undefined }
}

/** As in llm: `$name`, `${name}`, and `$$` for a dollar sign. */
const variable = /\$(?:\$|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})/g

/** Writes a new template, for its owner alone. @returns its path @throws FailureError `usage` for a name that is wrong, or taken */
export function writeTemplate(home: string, name: string, template: Template): string {
  if (!/^[A-Za-z0-9][\w-]{0,63}$/.test(name)) throw new FailureError('usage', `${quote(name)} must be a name: letters, digits, "-" and "_"`)
  if (templatesIn(home).some((each) => each.name === name))
    throw new FailureError('usage', `the template ${quote(name)} exists already; to change it: braidclaw template edit ${name}`)
  const path = join(home, 'templates', `${name}.yaml`)
  mkdirSync(join(home, 'templates'), { recursive: true, mode: 0o700 })
  writeFileSync(path, stringify(template), { flag: 'wx', mode: 0o600 })
  return path
}
