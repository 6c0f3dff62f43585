import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { parse, stringify } from 'smol-toml'
import { locate } from './locate.ts'
import { readToml, tomlValue } from './toml.ts'

const lines = (text: string) => readToml(text).problems.map(({ line, column }) => `${line}:${column}`)

test('each broken line is told, and the rest is still read', () => {
  const { data, problems } = readToml('a = x\nb = 1\nc = "open\n[t\nd = 2\n[u]\ne = 3\n')
  expect(problems.map(({ line }) => line)).toEqual([1, 3, 4])
  expect(JSON.parse(JSON.stringify(data))).toEqual({ b: 1, u: { e: 3 } })
})

test('what was in a section with a broken header does not fall into the one before', () => {
  expect(JSON.parse(JSON.stringify(readToml('[a]\nx = 1\n[b\ny = 2\n[c]\nz = 3').data))).toEqual({ a: { x: 1 }, c: { z: 3 } })
})

test('a name that stands twice is a problem', () => {
  expect(readToml('a = 1\na = 2').problems[0]).toMatchObject({ line: 2, message: expect.stringContaining('this name stands twice') })
})

test('hundreds of broken lines end after twenty', () => {
  expect(lines('a = x\n'.repeat(500))).toHaveLength(20)
})

test('no message quotes the file', () => {
  const { problems } = readToml('key = SECRET\nother = "SECRET\n[SECRET\n')
  expect(JSON.stringify(problems)).not.toContain('SECRET')
})

test('comments keep their lines, and control characters in them are refused', () => {
  expect(readToml('# one\n  # two "\na = 1').place('a')).toMatchObject({ line: 3, column: 1, value: { line: 3, column: 5 } })
  expect(lines('# a\u0007b\nx = 1')).toEqual(['1:4'])
  expect(readToml('a = """\n# no comment\n"""').data.a).toBe('# no comment\n')
})

test('a place is found behind strings, lists and inline tables of every shape', () => {
  const text = `\ufeff# c
"a b" = "x # no comment"
'q"' = 1 # ["
m = """ "quoted" \\""" [x]
still = 1 """""
l = [ # c ]
  "]", ['}'], { k = 1 },
] # end
i = { p = { q = 1 }, 'r.s' = "}" }
d . e.f = 2
[ s . "t" ]
k=1
[[arr]]
k = 1
[[arr]]
k = 2
"\\u0061\\u0062" = 3`
  parse(text)
  const at = (path: string) => {
    const place = locate(text).get(path)
    return place && `${place.line}:${place.column}`
  }
  expect(['a b', 'q"', 'm', 'l', 'i', 'i.p.q', 'i.r.s', 'd', 'd.e.f', 's.t', 's.t.k', 'arr', 'arr.k', 'arr.ab'].map(at)).toEqual([
    '2:1',
    '3:1',
    '4:1',
    '6:1',
    '9:1',
    '9:13',
    '9:22',
    '10:1',
    '10:1',
    '11:1',
    '12:1',
    '13:1',
    '14:1',
    '17:1',
  ])
})

test('a long string that ends in a quote of its own does not swallow what follows', () => {
  const text = 'l = ["""a""""]\nz = 1\nq = "end"'
  parse(text)
  expect([locate(text).get('z')?.line, locate(text).get('q')?.line]).toEqual([2, 3])
})

const key = fc.oneof(
  fc.stringMatching(/^[a-z][a-z0-9_-]{0,5}$/),
  fc.string({ minLength: 1, maxLength: 6 }).filter((name) => !name.includes('.') && name.isWellFormed()),
)
const leaf = fc.oneof(
  fc.integer(),
  fc.boolean(),
  fc.string().filter((text) => text.isWellFormed()),
  fc.array(
    fc.string().filter((text) => text.isWellFormed()),
    { maxLength: 3 },
  ),
)
const table = fc.dictionary(key, fc.oneof(leaf, fc.dictionary(key, leaf, { maxKeys: 3 })), { maxKeys: 5 })

test('property: every key of a written file is found, on a line that starts with it', () => {
  fc.assert(
    fc.property(table, (value) => {
      const text = stringify(value)
      const rows = text.split('\n')
      const places = locate(text)
      for (const [name, member] of Object.entries(value)) {
        const place = places.get(name)
        expect(place).toBeDefined()
        const row = rows[(place?.line ?? 0) - 1]?.slice((place?.column ?? 0) - 1) ?? ''
        const found: unknown = Object.keys(parse(row.startsWith('[') ? row : `${row.split(' = ')[0]} = 0`))[0]
        if (typeof member !== 'object' || !row.includes(' = ', row.indexOf(' = ') + 1)) expect(found).toBe(name)
      }
    }),
    { numRuns: 300 },
  )
})

test('property: what we write as a TOML value is read back the same', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        leaf,
        fc.dictionary(
          key,
          fc.string().filter((text) => text.isWellFormed()),
        ),
      ),
      (value) => {
        const back: unknown = JSON.parse(JSON.stringify(parse(`v = ${tomlValue(value)}`).v))
        expect(back).toEqual(JSON.parse(JSON.stringify(value)))
      },
    ),
    { numRuns: 300 },
  )
})
