/** Exports the table as JSON Schema (2020-12) for editors and other programs. */

import type { JsonObject } from '../../kit/json.ts'
import { defaultOf, forms, type Row, type Rows } from '../../kit/settings.ts'
import { type ChannelRows, kinds, sections, topRows } from '../table.ts'

export function configSchema(channels: readonly ChannelRows[]): JsonObject {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'BraidClaw configuration (config.toml)',
    ...object({
      ...properties(topRows),
      ...mapped(sections, section),
      providers: object({
        models: { type: 'object', propertyNames: { pattern: forms.provider.pattern }, additionalProperties: provider() },
      }),
      mcp: object({ servers: { type: 'object', additionalProperties: { type: 'object' } } }),
      channels: object(Object.fromEntries(channels.map(({ name, settings }) => [name, section(settings)]))),
    }),
  }
}

function section(rows: Rows): JsonObject {
  return object(properties(rows))
}

/** Builds one alternative per kind, because each kind has its own keys. */
function provider(): JsonObject {
  return {
    oneOf: kinds.map(({ kind, settings }) => {
      const required = Object.keys(settings).filter((key) => settings[key]?.required)
      return { ...object({ kind: { const: kind }, ...properties(settings) }), required: ['kind', ...required] }
    }),
  }
}

function object(members: JsonObject): JsonObject {
  return { type: 'object', additionalProperties: false, properties: members }
}

function properties(rows: Rows): JsonObject {
  return mapped(rows, property)
}

function mapped<In, Out>(members: { readonly [name: string]: In }, one: (member: In) => Out): { [name: string]: Out } {
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [name, one(member)]))
}

function property(setting: Row): JsonObject {
  const fallBack = defaultOf(setting)
  return { description: setting.about, ...shape(setting), ...(fallBack === undefined ? {} : { default: fallBack }) }
}

function shape(setting: Row): JsonObject {
  switch (setting.type) {
    case 'text':
      return { type: 'string', pattern: forms[setting.form === 'provider' ? 'any' : (setting.form ?? 'any')].pattern }
    case 'choice':
      return { type: 'string', enum: setting.values }
    case 'boolean':
      return { type: 'boolean' }
    case 'whole':
      return { type: 'integer', minimum: setting.min, maximum: setting.max }
    case 'number':
      return { type: 'number', minimum: setting.min, maximum: setting.max }
    case 'path':
    case 'url':
      return { type: 'string', minLength: 1 }
    case 'paths':
      return { type: 'array', items: { type: 'string', minLength: 1 } }
    case 'words':
      return { type: 'array', items: { type: 'string', pattern: wordPattern(setting) }, ...(setting.filled ? { minItems: 1 } : {}) }
    case 'ports':
      return { type: 'array', items: { type: 'integer', minimum: 1, maximum: 65_535 } }
    case 'table':
      return { type: 'object' }
    case 'map':
      return { type: 'object', additionalProperties: { type: 'string', pattern: forms.provider.pattern } }
  }
}

function wordPattern({ form, everyone }: Extract<Row, { type: 'words' }>): string {
  const { pattern } = forms[form]
  return everyone ? `${pattern}|^\\*$` : pattern
}
