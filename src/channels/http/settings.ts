/** Defines the settings of [channels.http]: where the gateway listens, and under which names. */

import type { Rows } from '../../kit/settings.ts'

export const httpPeople = { users: ['*'], byToken: true } as const

/** Names the cookie of a session: cookies do not tell ports apart, so each port has a name of its own. */
export function sessionCookie(port: number): string {
  return `braidclaw_${port}`
}

export const httpRows = {
  enabled: {
    type: 'boolean',
    default: false,
    about: 'Whether the daemon also listens for HTTP (docs/gateway.md); "braidclaw serve" always does.',
  },
  host: {
    type: 'text',
    default: '127.0.0.1',
    about: 'The address to listen on. Another one than this machine itself lets others in who have a token.',
  },
  port: { type: 'whole', min: 0, max: 65_535, unit: '(a port)', default: 4127, about: 'The port to listen on; 0 is any free one.' },
  allowed_hosts: {
    type: 'words',
    form: 'any',
    default: [],
    example: ['agent.example.org'],
    about: 'Further names under which a proxy or another machine reaches it, with the port if people type one.',
  },
  token_file: {
    type: 'path',
    absent: 'only the tokens of "token list"',
    example: '~/.braidclaw/http.token',
    about: 'A file (mode 0600) that holds one more admin token of at least 22 characters; it is read again when it changes.',
  },
  tls_cert: {
    type: 'path',
    absent: 'no TLS',
    example: '~/tls/cert.pem',
    about: 'The certificate chain, PEM; with tls_key the gateway speaks HTTPS.',
  },
  tls_key: { type: 'path', absent: 'no TLS', example: '~/tls/key.pem', about: 'The private key of the certificate, PEM.' },
} as const satisfies Rows
