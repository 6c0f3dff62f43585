import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createRedactor, createStreamRedactor } from './redact.ts'

/** Keys are put together here, so that no file of the project holds anything that looks like one. */
const body = (count: number, alphabet = '0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sTuVwXyZ') =>
  Array.from({ length: count }, (_, at) => alphabet[(at * 7) % alphabet.length]).join('')
const upper = (count: number) => body(count, '7QK2ZX9MVB4LTW6YRJ3D')
const pem = (kind: string, line = '\n') =>
  [`-----BEGIN ${kind}PRIVATE KEY-----`, body(64), body(64), body(20), `-----END ${kind}PRIVATE KEY-----`].join(line)
const jwt = ['eyJ', body(33), '.eyJ', body(70), '.', body(43)].join('')

const keys: readonly (readonly [name: string, key: string])[] = [
  ...['ghp_', 'gho_', 'ghs_', 'ghu_'].map((prefix) => ['GitHub token', prefix + body(36)] as const),
  ['GitHub token', `github_pat_${body(22)}_${body(59)}`],
  ['AWS key', `AKIA${upper(16)}`],
  ['AWS key', `ASIA${upper(16)}`],
  ['API key', `sk-${body(48)}`],
  ['API key', `sk-ant-api03-${body(90)}`],
  ['API key', `sk-proj-${body(60)}-${body(60)}`],
  ['Slack token', `xoxb-${body(12, '0123456789')}-${body(24)}`],
  ['Slack token', `xoxp-${body(12, '0123456789')}-${body(24)}`],
  ['Google key', `AIza${body(35)}`],
  ['GitLab token', `glpat-${body(20)}`],
  ['BraidClaw token', 'bct_bpaa8x90xkcrt_nd0xvrb9bd8ws5asxg2fbfm19x7s24js'],
  ['npm token', `npm_${body(36)}`],
  ['PyPI token', `pypi-AgEIcHlwaS5vcmc${body(60)}`],
  ['Stripe key', `sk_live_${body(24)}`],
  ['JSON Web Token', jwt],
  ...['', 'RSA ', 'EC ', 'OPENSSH ', 'ENCRYPTED '].map((kind) => ['private key', pem(kind)] as const),
  ['private key', pem('', '\\n')],
  ['private key', pem('RSA ', '\r\n')],
]

const { text } = createRedactor()

describe('what has the format of a key', () => {
  test.each(keys)('%s is taken out, alone and within a text', (name, key) => {
    expect(text(key)).toBe(`[redacted:${name}]`)
    for (const [left, right] of [
      ['KEY=', '\n'],
      ['"', '",'],
      ['(', ')'],
      ['é', ' …'],
    ] as const)
      expect(text(`${left}${key}${right}`)).toBe(`${left}[redacted:${name}]${right}`)
  })

  test('of a header and of an address only the secret part goes', () => {
    expect(text(`Authorization: Bearer ${body(30)}\nAccept: */*`)).toBe('Authorization: Bearer [redacted:token]\nAccept: */*')
    expect(text('postgres://app:correct-horse@db.internal:5432/x?y=1')).toBe('postgres://app:[redacted:password]@db.internal:5432/x?y=1')
    expect(text(`git clone https://oauth2:${body(12)}@example.com/r.git`)).toBe(
      'git clone https://oauth2:[redacted:password]@example.com/r.git',
    )
    expect(text('redis://:hunter22@10.0.0.5:6379')).toBe('redis://:[redacted:password]@10.0.0.5:6379')
  })

  test('a registered key keeps its own label, and two that overlap leave nothing of either', () => {
    const redactor = createRedactor()
    redactor.register(`ghp_${body(36)}`, 'GITHUB_TOKEN')
    expect(redactor.text(`ghp_${body(36)}`)).toBe('[redacted:GITHUB_TOKEN]')
    redactor.register(`secret-prefix-ghp_${body(10)}`, 'ODD')
    expect(redactor.text(`secret-prefix-ghp_${body(36)}`)).not.toContain(body(36).slice(-12))
  })
})

test('examples, templates, hashes and words are left as they are', () => {
  for (const harmless of [
    ['AKIA', 'IOSFODNN7EXAMPLE'].join(''),
    `ghp_${'x'.repeat(36)}`,
    `sk-${'X'.repeat(40)}`,
    'sk-no-key-required',
    'sk-folding-cube-animation-wrapper',
    `task-${body(30)}`,
    `risk-${body(30)}`,
    `${body(10)}AKIA${upper(16)}`,
    'Authorization: Bearer $TOKEN',
    'Bearer authentication is described below',
    'postgres://$USER:$PASSWORD@$HOST/db',
    'https://user:<password>@host/',
    'mysql://root:password@db.example.com/db',
    'postgres://postgres:postgres@localhost:5432/app',
    'postgres://app:app-password@db:5432/app',
    'redis://:hunter22@127.0.0.1:6379',
    ['eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9', 'eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIn0', body(43)].join('.'),
    'http://127.0.0.1:8080/a@b',
    'see https://example.com: it is at a@b.c',
    '-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----',
    'A file begins with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----',
    `${body(64, '0123456789abcdef')}`,
    `sha512-${body(86)}==`,
    'eyJhbGciOiJIUzI1NiJ9',
  ])
    expect(text(harmless)).toBe(harmless)
})

test('a stream shows what the whole text shows, wherever it is cut', () => {
  const word = fc.constantFrom(
    'the ',
    'task-',
    '\n',
    '-',
    ' ',
    '://',
    'eyJ',
    '.',
    ':',
    '@',
    '/',
    'sk',
    '_',
    'Bearer',
    '-----BEGIN',
    '-----',
    'PRIVATE KEY',
  )
  const key = fc.constantFrom(
    ...keys.map(([, one]) => one),
    `Bearer ${body(30)}`,
    'db://u:password1@h.io',
    'db://u:password1@h',
    'db://u:password1@127.0.0.1',
  )
  const partOf = fc.tuple(key, fc.nat(200)).map(([one, length]) => one.slice(0, length))
  const whole = fc.array(fc.oneof(word, key, partOf, fc.string({ maxLength: 8 })), { maxLength: 12 }).map((parts) => parts.join(''))
  fc.assert(
    fc.property(whole, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 30 }), (said, sizes) => {
      const redactor = createRedactor()
      redactor.register('sk-registered-0042', 'OWN')
      const stream = createStreamRedactor(redactor)
      let shown = ''
      for (let at = 0, turn = 0; at < said.length; turn += 1) {
        const size = sizes[turn % sizes.length] ?? 1
        shown += stream.push(said.slice(at, at + size))
        at += size
      }
      expect(shown + stream.flush()).toBe(redactor.text(said))
    }),
    { numRuns: 3_000 },
  )
})

test('a stream keeps back only what could become a key', () => {
  const stream = createStreamRedactor(createRedactor())
  expect(stream.push('Ordinary words come at once')).toBe('Ordinary words come at once')
  expect(stream.push(', tasks')).toBe(', tasks')
  expect(stream.push(` and gh`)).toBe(' and ')
  expect(stream.push('ost')).toBe('ghost')
  const shown = [...` ghp_${body(36)} end`].map((character) => stream.push(character)).join('')
  expect(shown + stream.flush()).toBe(' [redacted:GitHub token] end')
})

test('a megabyte that was made to be slow is read in linear time', () => {
  const { find, scan } = createRedactor().formats
  for (const unit of [
    'eyJ',
    '.eyJ',
    ` eyJ${'a'.repeat(499)}`,
    `eyJ${'a'.repeat(12)}.`,
    'Bearer ',
    '://',
    `://${'a'.repeat(99)}:`,
    ' sk-',
    'ghp_',
    '-----BEGIN PRIVATE KEY-----\n',
    `${pem('')} `,
  ]) {
    const long = unit.repeat(Math.ceil(1_000_000 / unit.length))
    const cost = (many: string) => {
      const from = process.cpuUsage()
      find(many)
      scan(many, 0)
      const { user, system } = process.cpuUsage(from)
      return (user + system) / 1_000
    }
    const least = Math.min(...[1, 2, 3].map(() => cost(long)))
    expect([unit.slice(0, 30), least < 300]).toEqual([unit.slice(0, 30), true])
  }
})
