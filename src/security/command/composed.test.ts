/** Hides forbidden commands behind random compositions of all wrappers; the verdict must always be blocked. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell, not JavaScript

import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { positions, spellings, wrappers } from './corpus.fixture.ts'
import { placed, ratingOf } from './policy.fixture.ts'
import { quoteText } from './syntax/quote.ts'

const { FUZZ_RUNS = 600, FUZZ_SEED: seed } = process.env

/** A simple command can take further wrappers around it; a script fits only into a text. */
type ComposedCommand = { readonly text: string; readonly simple: boolean }
type ComposedStep = (inner: ComposedCommand) => ComposedCommand

const shells = [
  'sh -c',
  'bash -c',
  'bash -euo pipefail -c',
  'bash -O extglob -c',
  'bash +O extglob -ec',
  'bash --norc --rcfile f -c',
  'bash -co pipefail',
  'bash +o posix -c --',
  'dash -o errexit -c',
  'zsh -o extendedglob -c',
  'ksh -o errexit -c',
  'busybox sh -o errexit -c',
  'env - bash -c',
  'eval',
] as const

/** Wrappers for simple commands only. */
const around = [...wrappers, 'env - @', 'env -i - A=1 @', 'env -u A - @', 'xargs -I% @ %', 'find . -type f -exec @ {} +']

/** `watch` removes one layer of quotes, so a text that is quoted twice would no longer run. */
function fits(template: string, { text, simple }: ComposedCommand): boolean {
  return simple && !(template.startsWith('watch') && text.includes("'"))
}

const prefixed: fc.Arbitrary<ComposedStep> = fc
  .constantFrom(...around)
  .map(
    (template) => (inner) =>
      fits(template, inner) ? { text: placed(template, inner.text), simple: !/\||^(!|time) /.test(template) } : inner,
  )

const shelled: fc.Arbitrary<ComposedStep> = fc
  .constantFrom(...shells)
  .map((shell) => (inner) => ({ text: `${shell} ${quoteText(inner.text)}`, simple: true }))

/** The text ends in a part that is known only at run time. */
const partly: fc.Arbitrary<ComposedStep> = fc
  .tuple(fc.constantFrom(...shells), fc.constantFrom('$x', '"$x"', '$(cat list)', '${x:-a}', '`ls`'))
  .map(([shell, end]) => (inner) => ({ text: `${shell} ${quoteText(inner.text)}' '${end}`, simple: true }))

const piped: fc.Arbitrary<ComposedStep> = fc
  .constantFrom('bash -euo pipefail', 'sh -o errexit', 'bash -O extglob -s')
  .map((shell) => (inner) => ({ text: `${shell} <<< ${quoteText(inner.text)}`, simple: false }))

const positioned: fc.Arbitrary<ComposedStep> = fc
  .constantFrom(...positions.filter((position) => !/EOF|#|`/.test(position)))
  .map((position) => (inner) => (inner.simple ? { text: placed(position, inner.text), simple: false } : inner))

const steps = fc.array(fc.oneof(prefixed, shelled, partly, piped, positioned), { minLength: 1, maxLength: 4 })

test('a forbidden command behind any composition of wrappers is blocked', () => {
  fc.assert(
    fc.property(fc.constantFrom(...spellings), steps, (word, chosen) => {
      const { text } = chosen.reduce<ComposedCommand>((inner, step) => step(inner), { text: `${word} x`, simple: true })
      expect([text, ratingOf(text)]).toEqual([text, 'blocked'])
    }),
    { numRuns: Number(FUZZ_RUNS), ...(seed === undefined ? {} : { seed: Number(seed) }) },
  )
})
