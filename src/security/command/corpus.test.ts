import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { blocked, deadly, type Expected, high, medium, positions, refused, spellings, texts, wrappers } from './corpus.fixture.ts'
import { placed, ratingOf } from './policy.fixture.ts'

const missed = (expected: Expected, commands: readonly string[]) =>
  commands
    .map((command) => ({ command, rating: ratingOf(command) }))
    .filter(({ rating }) => (expected === 'refused' ? rating === 'medium' : rating !== expected))
    .map(({ command, rating }) => `${rating}, not ${expected}: ${JSON.stringify(command)}`)

const across = (templates: readonly string[], commands: readonly string[]) =>
  templates.flatMap((template) => commands.map((command) => placed(template, command)))

test('what destroys, escapes or is forbidden is blocked', () => expect(missed('blocked', blocked)).toEqual([]))

test('what cannot be read or is not listed is high', () => expect(missed('high', high)).toEqual([]))

test('what is dangerous in more than one way never runs at medium', () => expect(missed('refused', refused)).toEqual([]))

test('harmless work runs at medium, also where it looks dangerous', () => expect(missed('medium', medium)).toEqual([]))

test('every deadly command is blocked in every place of a script', () => expect(missed('blocked', across(positions, deadly))).toEqual([]))

test('every spelling of a forbidden name is blocked in every place', () => {
  expect(
    missed(
      'blocked',
      across(
        positions,
        spellings.map((word) => `${word} x`),
      ),
    ),
  ).toEqual([])
})

test('every deadly command is blocked behind every wrapper', () => {
  const simple = deadly.filter((command) => !command.includes('|'))
  expect(missed('blocked', across(wrappers, simple))).toEqual([])
})

test('every spelling of a forbidden name is blocked behind every wrapper', () => {
  expect(
    missed(
      'blocked',
      across(
        wrappers,
        spellings.map((word) => `${word} x`),
      ),
    ),
  ).toEqual([])
})

test('every deadly command is blocked inside text that another command runs', () => {
  expect(missed('blocked', across(texts, deadly))).toEqual([])
})

test('the same words as data run', () => {
  const quoted = deadly.flatMap((command) => [
    `echo "${command}"`,
    `grep -r '${command}' .`,
    `git log --grep="${command}"`,
    `cat <<'E'\n${command}\nE`,
    `ls # ${command}`,
  ])
  expect(missed('medium', quoted)).toEqual([])
})

test('harmless commands stay harmless in every place and behind every plain wrapper', () => {
  const plain =
    /coproc|sudo|doas|strace|unbuffer|chroot|unshare|systemd|\$\{|a\[|\(\(|flock|select|local|-ok |> out @|exec -a|ls > "|ls \$\(ls|-u HOME|env -i/
  const places = [...positions, ...wrappers].filter((template) => !plain.test(template))
  expect(missed('medium', across(places, ['ls src', 'cat a.ts', 'git status']))).toEqual([])
})

const template = fc.constantFrom(...positions, ...wrappers, ...texts)
const buried = fc.tuple(fc.constantFrom(...spellings), fc.array(template, { minLength: 1, maxLength: 4 }))

/** Puts a command inside another text, quoted so that it stays the same command there. */
function bury(inner: string, outer: string): string {
  // The shell reads this text twice, so only plain words come through unchanged.
  if (outer.startsWith('eval eval') && /[^\w ./-]/.test(inner)) return inner
  if (outer.includes("'@'")) return placed(outer, inner.replaceAll("'", "'\\''"))
  const quoted = outer.includes('"@') || outer.includes('`@') || outer.includes("'sh -c")
  return quoted && /[`"\\']/.test(inner) ? inner : placed(outer, inner)
}

test('a forbidden name buried anywhere, at any depth, never runs at medium', () => {
  fc.assert(
    fc.property(buried, ([word, templates]) => {
      expect(ratingOf(templates.reduce(bury, `${word} x`))).not.toBe('medium')
    }),
    { numRuns: 1500 },
  )
})
