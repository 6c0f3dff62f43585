/** The table as JSON Schema (2020-12), for editors and other programs. */

import type { JsonObject } from '../../kit/json.ts'
import { providerKinds } from '../config.ts'
import { defaultOf } from '../layers/defaults.ts'
import { forms, leafOf, type Setting } from '../setting.ts'
import { settings } from '../settings.ts'

export function configSchema(): JsonObject {
  const top = properties((setting) => !setting.key.includes('.'))
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'BraidClaw configuration (config.toml)',
    ...object({
      ...top,
      security: section('security'),
      limits: section('limits'),
      providers: object({
        models: { type: 'object', propertyNames: { pattern: forms.provider.pattern }, additionalProperties: provider() },
      }),
      channels: object({ cli: section('channels.cli'), discord: section('channels.discord') }),
      tools: section('tools'),
      memory: section('memory'),
      receipts: section('receipts'),
      log: section('log'),
    }),
  }
}

function section(name: string): JsonObject {
  return object(properties((setting) => setting.key.startsWith(`${name}.`)))
}

/** One alternative a kind: each has its own keys. */
function provider(): JsonObject {
  const rows = settings.filter((setting) => setting.key.startsWith('providers.'))
  return {
    oneOf: providerKinds.map((kind) => {
      const mine = properties((setting) => rows.includes(setting) && setting.kinds?.includes(kind) === true)
      const required = rows.filter((setting) => setting.required?.includes(kind)).map((setting) => leafOf(setting.key))
      return { ...object({ kind: { const: kind }, ...mine }), required }
    }),
  }
}

function object(members: JsonObject): JsonObject {
  return { type: 'object', additionalProperties: false, properties: members }
}

function properties(which: (setting: Setting) => boolean): JsonObject {
  return Object.fromEntries(settings.filter(which).map((setting) => [leafOf(setting.key), property(setting)]))
}

function property(setting: Setting): JsonObject {
  const fallBack = defaultOf(setting)
  return { description: setting.about, ...shape(setting), ...(fallBack === undefined ? {} : { default: fallBack }) }
}

function shape(setting: Setting): JsonObject {
  switch (setting.type) {
    case 'text':
      return { type: 'string', pattern: setting.form === 'provider' ? forms.any.pattern : forms[setting.form].pattern }
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
      return { type: 'array', items: { type: 'string', pattern: forms[setting.form].pattern }, ...(setting.filled ? { minItems: 1 } : {}) }
    case 'ports':
      return { type: 'array', items: { type: 'integer', minimum: 1, maximum: 65_535 } }
    case 'map':
      return { type: 'object', additionalProperties: { type: 'string', pattern: forms.provider.pattern } }
  }
}
