import { expect, test } from 'bun:test'
import { configOf, loaded } from '../test-load.ts'

const wire = (name: string, more = '') =>
  `[providers.models.${name}]\nkind = "openai-compatible"\nbase_url = "http://localhost:1/v1"\nmodel = "m-${name}"\n${more}`

const user = `default_provider = "router9"\ndefault_model = "big"\n${wire('openai')}\n${wire('router9')}`
const chosen = (given: Parameters<typeof loaded>[0]) => {
  const { config, notices } = loaded({ user, ...given })
  return [config.defaultProvider, config.defaultModel, ...notices]
}

test('--model provider/model chooses both, at the first slash', () => {
  expect(chosen({ flags: { model: 'openai/gpt-x' } })).toEqual(['openai', 'gpt-x'])
  expect(chosen({ flags: { model: 'router9/openai/gpt-x' } })).toEqual(['router9', 'openai/gpt-x'])
  expect(chosen({ env: { BRAIDCLAW_MODEL: 'openai/gpt-y' } })).toEqual(['openai', 'gpt-y'])
})

test('a slash after no provider is part of the name, with a hint when it was nearly one', () => {
  expect(chosen({ flags: { model: 'meta/llama' } })).toEqual(['router9', 'meta/llama'])
  expect(chosen({ flags: { model: 'opnai/x' } })[2]).toBe(
    '--model: no provider is called "opnai", so the whole text is taken as the model\'s name; did you mean "openai/…"?',
  )
  expect(chosen({ flags: { provider: 'router9', model: 'openai/x' } })).toEqual(['router9', 'openai/x'])
})

test('the name of a provider alone chooses it with its own model', () => {
  expect(chosen({ flags: { model: 'openai' } })).toEqual(['openai', 'm-openai'])
  expect(chosen({ flags: { provider: 'router9', model: 'openai' } })).toEqual(['router9', 'openai'])
})

test('a model is not asked of another provider than it was chosen for', () => {
  expect(chosen({})).toEqual(['router9', 'big'])
  expect(chosen({ env: { BRAIDCLAW_PROVIDER: 'openai' } })).toEqual(['openai', 'm-openai'])
  expect(chosen({ env: { BRAIDCLAW_PROVIDER: 'openai' }, flags: { model: 'm2' } })).toEqual(['openai', 'm2'])
  expect(chosen({ env: { BRAIDCLAW_MODEL: 'm3' }, flags: { provider: 'openai' } })).toEqual(['openai', 'm-openai'])
})

test("a wrapper's model is that of the provider it asks first", () => {
  const wrapped = `default_provider = "w"\n[providers.models.w]\nkind = "router"\nroutes = {}\ndefault = "r"\n[providers.models.r]\nkind = "reliable"\nproviders = ["a", "local"]\n${wire('a')}`
  expect(configOf({ user: wrapped })).toMatchObject({ defaultProvider: 'w', defaultModel: 'm-a' })
})
