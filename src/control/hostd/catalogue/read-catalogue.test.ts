import { describe, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bindParams } from './bind.ts'
import { builtInCatalogue } from './built-in.ts'
import { parseCatalogue, readCatalogue } from './read-catalogue.ts'

function problems(text: string): string[] {
  return parseCatalogue(text).problems.map(({ line, field, message }) => `${line} ${field} ${message}`)
}

const good = `[operations.a]
about = "A"
platforms = ["linux"]
risk = "low"
argv = ["/bin/echo", "{x}"]
params.x = { type = "text", pattern = '^a+$' }
`

describe('a catalogue', () => {
  test('of ours has no problem', () => expect(problems(builtInCatalogue)).toEqual([]))
  test('with one operation has no problem', () => expect(problems(good)).toEqual([]))

  test.each([
    [
      'risk = "low"',
      'risk = "low"\napproval = true\ncompat = true',
      '6 operations.a.compat excludes "approval": the shared secret can bring no approval, so leave out one of the two',
    ],
    ['risk = "low"', 'risk = "lo"', '4 operations.a.risk is one of low, medium, high; did you mean "low"?; got "lo"'],
    ['"linux"', '"linus"', '3 operations.a.platforms "linus" is not one of linux, freebsd, darwin; did you mean "linux"?'],
    ['/bin/echo', 'echo', '5 operations.a.argv begins with the absolute path of a program, without parameters'],
    ['/bin/echo', '/bin/../bin/echo', '5 operations.a.argv begins with the absolute path of a program, without parameters'],
    ['/bin/echo', '/bin/{x}', '5 operations.a.argv begins with the absolute path of a program, without parameters'],
    ['"{x}"', '"{x}", "{y}"', '5 operations.a.argv {y} is not a parameter of this operation; did you mean "x"?'],
    ['"{x}"', '"{x"', '5 operations.a.argv the brace in "{x" begins no parameter such as {name}; write {{ or }} for a brace'],
    ['"{x}"', '"{x}{x}"', '5 operations.a.argv two parameters in one element need a text between them'],
    [
      '^a+$',
      '^(?!a)$',
      '6 operations.a.params.x.pattern "(?" groups other than (?:…) are not allowed: they need backtracking; write the cases out',
    ],
    ['type = "text"', 'type = "words"', '6 operations.a.params.x.type is one of enum, text, int, path, list; got "words"'],
    ['pattern =', 'default = "b", pattern =', '6 operations.a.params.x.default must match ^a+$; got "b"'],
    ['about = "A"', 'abuot = "A"', '2 operations.a.abuot is not a field of this table; did you mean "about"?'],
    [
      'about = "A"',
      'about = "A"\nenv = { LD_PRELOAD = "x" }',
      "3 operations.a.env LD_PRELOAD cannot be set: names are capital letters, values are texts, and the loader's variables (LD_…) are refused",
    ],
    ['about = "A"', 'about = "A"\ntimeout_s = 0', '3 operations.a.timeout_s is a whole number from 1 to 3600; got 0'],
    ['[operations.a]', '[operations.hostd-list]', '1 operations.hostd-list is built in and lists the operations'],
    [
      '[operations.a]',
      '[server]\ncontrol_uids = [-1]\n[operations.a]',
      '2 server.control_uids is a list of whole numbers from 0 to 4294967294; got a list of 1',
    ],
    ['[operations.a]', 'risk = "low"\n[operations.a]', '1 risk is not a field of this table'],
  ])('with %s replaced by %s names the line, the field and what is allowed', (from, to, problem) =>
    expect(problems(good.replace(from, to))).toContain(problem),
  )

  test('tells every problem at once, also those after broken lines', () => {
    const found = problems(`${good}\nthis is broken\n[operations.b]\nabout = 1\nrisk = "x"\n`)
    expect(found.map((problem) => problem.split(' ').slice(0, 2).join(' '))).toEqual([
      '8 ',
      '9 operations.b.argv',
      '10 operations.b.about',
      '11 operations.b.risk',
    ])
  })
})

describe('argv', () => {
  const bind = (argv: string, params: string, given: object) => {
    const { catalogue, problems } = parseCatalogue(`${good.replace('"{x}"', argv).replace(/params.*\n/, '')}${params}`)
    const [operation] = catalogue.operations
    if (!operation || problems.length > 0) throw new Error(JSON.stringify(problems))
    return bindParams(operation, { ...given }, () => ({ ok: false, message: 'no paths here' }))
  }
  const two = `params.a = { type = "text", pattern = '^.+$' }\nparams.b = { type = "text", pattern = '^.+$' }`

  test('keeps the border between two parameters of one element', () => {
    expect(bind('"{a}@{b}"', two, { a: 'x', b: 'y@z' })).toEqual({ ok: true, argv: ['/bin/echo', 'x@y@z'] })
    expect(bind('"{a}@{b}"', two, { a: 'x@y', b: 'z' })).toEqual({ ok: false, problems: ['a: must not contain "@"'] })
  })

  test('lets no value begin an element with a dash, and a number neither', () => {
    const number = 'params.n = { type = "int", min = -5, max = 5 }'
    expect(bind('"{n}"', number, { n: -1 })).toEqual({ ok: false, problems: ['n: must not begin with "-", which would make it a flag'] })
    expect(bind('"--n={n}"', number, { n: -1 })).toEqual({ ok: true, argv: ['/bin/echo', '--n=-1'] })
    for (const n of [6, 1.5, '1', Number.NaN, null]) expect(bind('"--n={n}"', number, { n }).ok).toBe(false)
  })

  test('leaves out the elements of an optional parameter, and takes a default', () => {
    const more = `params.a = { type = "enum", values = ["p", "q"], default = "p" }\nparams.b = { type = "text", pattern = '^b$', optional = true }`
    expect(bind('"{a}", "--b={b}", "z"', more, {})).toEqual({ ok: true, argv: ['/bin/echo', 'p', 'z'] })
    expect(bind('"{a}", "--b={b}", "z"', more, { a: 'q', b: 'b' })).toEqual({ ok: true, argv: ['/bin/echo', 'q', '--b=b', 'z'] })
  })

  test('has braces of its own where they are doubled', () => {
    expect(bind('"{{.Names}} {a}"', `params.a = { type = "text", pattern = '^.+$' }`, { a: '{{x}}' })).toEqual({
      ok: true,
      argv: ['/bin/echo', '{.Names} {{x}}'],
    })
  })
})

describe('the file of a catalogue', () => {
  const uid = process.getuid?.() ?? 0
  const stage = () => {
    const folder = mkdtempSync(join(tmpdir(), 'catalogue-'))
    const path = join(folder, 'hostd.toml')
    writeFileSync(path, good)
    chmodSync(path, 0o644)
    return { folder, path, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) }
  }
  const says = (path: string, asUser = uid) => {
    const read = readCatalogue(path, asUser)
    return read.ok ? `${read.parsed.catalogue.operations.length} operations` : read.message
  }

  test('must belong to us, and neither it nor a folder above it may be changed by others', () => {
    using at = stage()
    expect(says(at.path)).toBe('1 operations')
    if (uid !== 0) expect(says(at.path, uid + 1)).toContain(`belongs to user ${uid}`)
    chmodSync(at.path, 0o664)
    expect(says(at.path)).toContain('can be written by others (mode 664)')
    chmodSync(at.path, 0o644)
    chmodSync(at.folder, 0o777)
    expect(says(at.path)).toContain(`"${at.folder}" can be written by others`)
  })

  test('is a file: neither a link nor a folder nor a missing one', () => {
    using at = stage()
    symlinkSync(at.path, join(at.folder, 'link'))
    expect(says(join(at.folder, 'link'))).toContain('it is a symbolic link')
    expect(says(at.folder)).toContain('is not a regular file')
    expect(says(join(at.folder, 'none'))).toContain('no such file')
  })

  test.if(uid === 0)('of another user than root and us is refused', () => {
    using at = stage()
    Bun.spawnSync(['chown', '65534', at.path])
    expect(says(at.path)).toContain('belongs to user 65534')
  })
})
