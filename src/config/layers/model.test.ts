import { expect, test } from 'bun:test'
import { configOf, loaded, problemsOf } from '../load.fixture.ts'

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

test('a slash after no provider is refused, with the nearest name: another model than the one meant would answer', () => {
  expect(problemsOf({ user, flags: { model: 'opnai/x' } })).toEqual([
    '--model default_model: unknown provider "opnai"; did you mean "openai/x"? If "opnai/x" is a model of router9: "router9/opnai/x"',
  ])
  expect(problemsOf({ user, env: { BRAIDCLAW_MODEL: 'meta/llama' } })).toEqual([
    'BRAIDCLAW_MODEL default_model: unknown provider "meta"; there are: openai, router9, local, anthropic, openrouter, ollama, lmstudio, gemini, groq, mistral, deepseek, xai. If "meta/llama" is a model of router9: "router9/meta/llama"',
  ])
  expect(problemsOf({ flags: { model: 'typo/x' } })).toEqual([
    '--model default_model: unknown provider "typo"; there are: local, openai, anthropic, openrouter, ollama, lmstudio, gemini, groq, mistral, deepseek, xai.',
  ])
  expect(problemsOf({ user, flags: { model: 'openai/' } })).toEqual([
    '--model default_model: "openai/" names no model; write "openai" for its own',
  ])
})

test('in the file, and beside a provider of the same source, a slash is part of the name', () => {
  expect(chosen({ flags: { provider: 'router9', model: 'openai/x' } })).toEqual(['router9', 'openai/x'])
  expect(chosen({ flags: { model: 'router9/meta/llama' } })).toEqual(['router9', 'meta/llama'])
  expect(chosen({ user: `default_provider = "router9"\ndefault_model = "meta/llama"\n${wire('router9')}` })).toEqual([
    'router9',
    'meta/llama',
  ])
})

test('whoever answers instead of all others is not asked for their models', () => {
  expect(chosen({ env: { BRAIDCLAW_LLM_BACKEND: 'stub' }, flags: { model: 'some/model' } })[0]).toBe('stub')
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
