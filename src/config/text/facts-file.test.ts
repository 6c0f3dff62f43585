import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readFactsFile } from './facts-file.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-facts-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function read(text: string) {
  const path = join(folder, 'models.toml')
  writeFileSync(path, text)
  return readFactsFile(path)
}
const said = (text: string) => read(text).problems.map((problem) => problem.replace(`${folder}/`, ''))

describe('a file with an error', () => {
  test('names the place, the value and what would be right', () => {
    expect(said('[near."m-1"]\nprice_input = -1\nprice_output = 2\n')).toEqual([
      'models.toml:2:1: near.m-1.price_input: -1 is out of range; must be from 0 to 100000 (US dollars per million tokens)',
    ])
    expect(said('[near.m]\ncontext_token = 5000\n')).toEqual([
      'models.toml:2:1: near.m.context_token: unknown key; did you mean "context_tokens"?',
    ])
    expect(said('near = 3\n')[0]).toContain('near: must be a provider with its models: [near."MODEL"]')
    expect(said('[near]\nm = 3\n')[0]).toContain('write [near."m"]')
    expect(said('[near.m]\nprice_input = 1\n')[0]).toContain('price_input and price_output belong together')
    expect(said('[near.m\n')[0]).toContain('models.toml:1:')
  })

  test('whose name has a dot without quotes says that quotes are missing', () => {
    expect(said('[openai.gpt-5.4-mini]\nprice_input = 1\nprice_output = 2\n')[0]).toContain('needs quotes: "gpt-5.4-mini"')
  })

  test('that is a folder or too large is told, and nothing is thrown', () => {
    expect(readFactsFile(folder).problems[0]).toContain('is a folder')
  })
})

test('a missing file says nothing of any model', () => {
  const file = readFactsFile(join(folder, 'none.toml'))
  expect(file.problems).toEqual([])
  expect(file.find('near', 'm')).toBeUndefined()
})

test('a model is found by its provider and its exact name', () => {
  const file = read(
    '[near."m-1.5"]\ncontext_tokens = 50_000\nmax_output_tokens = 4096\nprice_input = 3\nprice_output = 15.5\nprice_cached = 0.3\nsees = ["text", "image"]\nreasons = false\n',
  )
  expect(file.problems).toEqual([])
  expect(file.find('near', 'm-1.5')).toEqual({
    contextTokens: 50_000,
    maxOutputTokens: 4096,
    prices: { input: 3, output: 15.5, cached: 0.3, cacheWrite: undefined },
    sees: ['text', 'image'],
    reasons: false,
  })
  expect(file.find('near', 'm-1')).toBeUndefined()
  expect(file.find('other', 'm-1.5')).toBeUndefined()
})
