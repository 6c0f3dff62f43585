import { describe, expect, test } from 'bun:test'
import { processorMs } from '../../../../test/support/processor-ms.ts'
import { isDeep } from '../../../../test/support/tier.ts'
import { type Printed, printTo } from '../printer.ts'
import { createMarkdown } from './stream.ts'

const documents = {
  everything: `# Head *it* 你好

A **bold** word, _it_, ~~st~~, \`code\`, a [link](http://x.y/z) and some more words, so that the row is full.
Another line of the paragraph.
***
- a
  - b
    1. c
- [ ] open
- [x] done

  a second paragraph

1. one
1. two

   \`\`\`sh
   ls | grep x

   echo
   \`\`\`
3) other

> quote **bold**
> - item
lazy

| a | b |
|---|--:|
| 你好 | 2 |
| this cell is long enough to be wrapped in its column | **3** |

~~~ts
/* a comment
   of two lines */
const x = \`a
 \${b}\` + 'c'
\`\`\`
~~~
Setext
======
[a]: http://definition
<div>html</div>

    indented

    code
---
`,
  unclosed: 'text\n```python\ndef f():\n    """doc\n    more"""\n\n\nreturn **1**\n',
  escapes: 'a \u001b[31mred\u001b[0m\n\n```\n\u001b]0;title\u0007\n\u202eabc\n```\n&#27;[2J',
  windows: 'one\r\n\r\n- two\r\n- three\r\n\r\n```js\r\nlet x\r\n```\r\n',
  wide: '👩‍👩‍👧 family 日本語日本語日本語日本語日本語 and e\u0301 combined\n\n- 日本語日本語日本語日本語日本語日本語\n',
}

function shown(rows: readonly Printed[]): string {
  const out: string[] = []
  const { write } = printTo((text) => out.push(text), true)
  for (const row of rows) write([...row, '\n'])
  return out.join('')
}

function render(pieces: readonly string[], columns = 60, color = true): string {
  const markdown = createMarkdown(() => ({ columns, color }))
  const rows = pieces.flatMap((piece) => {
    const done = markdown.push(piece)
    markdown.tail()
    return done
  })
  return shown([...rows, ...markdown.end()])
}

const words = (text: string, columns = 60) => Bun.stripANSI(render([text], columns))

describe('a text that arrives in pieces is rendered as the whole', () => {
  test.each(Object.entries(documents))('%s', (_, text) => {
    const random = Bun.hash(text)
    let seed = Number(random % 2_147_483_647n)
    const next = (most: number) => {
      seed = (seed * 48_271) % 2_147_483_647
      return 1 + (seed % most)
    }
    for (const columns of [2, 17, 60, 400]) {
      const whole = render([text], columns)
      for (let round = 0; round < 12; round++) {
        const pieces: string[] = []
        for (let at = 0, size = next(24); at < text.length; at += size, size = next(24)) pieces.push(text.slice(at, at + size))
        expect(render(pieces, columns)).toBe(whole)
      }
      expect(render([...text], columns)).toBe(whole)
    }
  })

  test('the tail is always what the end would be', () => {
    const markdown = createMarkdown(() => ({ columns: 40, color: true }))
    for (const character of documents.everything) markdown.push(character)
    const tail = shown(markdown.tail())
    expect(shown(markdown.end())).toBe(tail)
    expect(markdown.tail()).toEqual([])
  })
})

describe('every row fits', () => {
  test.each([2, 3, 8, 20, 80, 400])('in %i columns', (columns) => {
    for (const text of Object.values(documents))
      for (const line of words(text, columns).split('\n')) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns)
  })
})

describe('what a person sees', () => {
  test.each([
    ['# Title', 'Title\n═════\n'],
    ['a\nb', 'a\nb\n'],
    ['- a\n- b\n\npar', '  • a\n  • b\n\npar\n'],
    ['1. a\n1. b', '   1. a\n   2. b\n'],
    ['- [x] a', '  ☒ a\n'],
    ['> a', '│ a\n'],
    ['[x](http://y)', 'x (http://y)\n'],
    ['```js\n\tx\n```', '```js\n    x\n```\n'],
    ['[a]: http://y', '[a]: http://y\n'],
    ['It costs $5 and $10, __init__', 'It costs $5 and $10, init\n'],
    [
      `|${'a|'.repeat(30)}\n|${'-|'.repeat(30)}\n|${'b|'.repeat(30)}`,
      `|${'a|'.repeat(29)}a\n|\n|${'-|'.repeat(29)}-\n|\n|${'b|'.repeat(29)}b\n|\n`,
    ],
  ])('%j', (text, seen) => expect(words(text)).toBe(seen))

  test('rows end between words', () => {
    expect(words('one two three', 8)).toBe('one two\nthree\n')
    expect(words('# one two three', 8)).toBe('one two\nthree\n════════\n')
    expect(words('- a\n  - one two three four', 14)).toBe('  • a\n      • one\n        two\n        three\n        four\n')
  })

  test('code has the colours of its language, also over several lines; without colour the words stay', () => {
    const code = '```ts\n/* a\nb */ let x = `c\nd`\n```'
    expect(render([code])).toContain('\u001b[2mb */\u001b[22m \u001b[35mlet\u001b[39m x = \u001b[32m`c\u001b[39m\n\u001b[32md`\u001b[39m\n')
    expect(render([code], 60, false)).toBe(`${code}\n`)
    expect(render(['- a\n  ```py\n  x = """b\n\n  c""" # d\n  ```\n  e'])).toContain(
      '\u001b[2m│ \u001b[22mx = \u001b[2m"""b\u001b[22m\n    \u001b[2m│ \u001b[22m\n    \u001b[2m│ \u001b[22m\u001b[2mc"""\u001b[22m \u001b[2m# d\u001b[22m\n',
    )
    expect(render(['> ```rs\n> let a = 1;\n> ```\n> let b'])).toContain('\u001b[2m│ \u001b[22m\u001b[35mlet\u001b[39m a = \u001b[33m1')
    expect(words('- a\n  ```py\n  one two three\n  ```', 16)).toBe('  • a\n\n    ┌─ py\n    │ one two th\n    │ ree\n    └─\n')
    expect(render(['```diff\n-a\n+b\n```'])).toContain('\u001b[31m-a\u001b[39m\n\u001b[32m+b\u001b[39m\n')
  })
})

describe('bad input', () => {
  test('what controls a terminal is seen, and never obeyed', () => {
    const out = render([documents.escapes])
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    expect(Bun.stripANSI(out)).toBe(out.replace(/\u001b\[\d+m/g, ''))
    expect(out).toContain('a \\u001b[31mred\\u001b[0m')
    expect(out).toContain('\\u001b]0;title\\u0007\n\\u202eabc\n')
    expect(out).not.toContain('\u001b[2J')
  })

  const mega = isDeep ? 5 * 1024 * 1024 : 512 * 1024
  test.each([
    ['one line', 'word '.repeat(mega / 5)],
    ['one word', 'x'.repeat(mega)],
    ['one paragraph', 'a **b** line\n'.repeat(mega / 13)],
    ['an unclosed fence', `\`\`\`ts\n${'const x = 1 // hi\n'.repeat(mega / 18)}`],
    ['one item', `- a\n${'  b\n'.repeat(mega / 4)}`],
    ['a table', `| a | b |\n|---|---|\n${'| one | two |\n'.repeat(mega / 14)}`],
    ['quotes', '> '.repeat(mega / 2)],
    ['brackets', '['.repeat(mega)],
    ['empty lines', '\n'.repeat(mega)],
    ['blank lines in an item', `- a\n${'\n'.repeat(mega)}`],
  ])('megabytes of %s take seconds, not minutes, and a bounded tail', (_, text) => {
    const markdown = createMarkdown(() => ({ columns: 80, color: true }))
    const begun = processorMs()
    for (let at = 0; at < text.length; at += 65_536) {
      markdown.push(text.slice(at, at + 65_536))
      expect(markdown.tail().length).toBeLessThan(20_000)
    }
    markdown.end()
    expect(processorMs() - begun).toBeLessThan(20_000)
  })

  test.each([
    ['dashes that end in a letter', `a | b\n${'-'.repeat(16_000)}x`],
    ['dashes below many columns', `${'|'.repeat(1_000)}\n${'-'.repeat(8_000)}x${'-'.repeat(8_000)}`],
    ['dashes around a letter', `a | b\n${'-'.repeat(8_000)}x${'-'.repeat(8_000)}`],
    ['spaces', `a${' '.repeat(8_000)}${'b'.repeat(8_000)}`],
  ])('a long row of %s in 100 pieces takes no quadratic time', (_, text) => {
    const markdown = createMarkdown(() => ({ columns: 80, color: true }))
    const begun = processorMs()
    for (let at = 0; at < text.length; at += Math.ceil(text.length / 100)) {
      markdown.push(text.slice(at, at + Math.ceil(text.length / 100)))
      markdown.tail()
    }
    markdown.end()
    expect(processorMs() - begun).toBeLessThan(500)
  })

  test('lists nested 100 deep, a table of 1,000 columns and nested marks keep to their rows', () => {
    const deep = Array.from({ length: 100 }, (_, level) => `${'  '.repeat(level)}- level ${level}`).join('\n')
    const table = `|${'a|'.repeat(1000)}\n|${'-|'.repeat(1000)}\n|${'b|'.repeat(1000)}`
    for (const text of [deep, table, '**a_'.repeat(4000), `${'`'.repeat(3000)}x`, '- '.repeat(4000), '<a '.repeat(4000)]) {
      const rows = words(text, 80).split('\n')
      expect(Math.max(...rows.map((row) => Bun.stringWidth(row)))).toBeLessThanOrEqual(80)
    }
    expect(words(deep, 80)).toContain('level\n')
  })
})

test('a piece costs far less than a frame of the screen, in the middle of a long document too', () => {
  const markdown = createMarkdown(() => ({ columns: 120, color: true }))
  const text = documents.everything.repeat(50)
  const took: number[] = []
  for (let at = 0; at < text.length; at += 4) {
    const begun = processorMs()
    markdown.push(text.slice(at, at + 4))
    markdown.tail()
    took.push(processorMs() - begun)
  }
  took.sort((a, b) => a - b)
  expect(took[Math.floor(took.length * 0.99)]).toBeLessThan(15)
})
