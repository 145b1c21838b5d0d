import type { NextConfig } from "next";

/** "export": files that the gateway serves itself. "standalone": a Node.js server of its own behind nginx. Else for `next dev`. */
const output = process.env.NEXT_OUTPUT as "export" | "standalone" | undefined;
const gateway = process.env.GATEWAY_URL ?? "http://127.0.0.1:8001";

/** As the gateway's (gateway/routes/web.py), but for inline scripts: a page that Next.js serves cannot name them all. */
const POLICY = [
  "default-src 'self'",
  "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "frame-src 'self' blob:",
  "worker-src 'self' blob:",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'self'",
].join("; ");

const config: NextConfig = {
  ...(output && { output }),
  ...(output === "standalone" && {
    distDir: "build",
    headers: async () => [
      {
        source: "/:path*",
        headers: [
          { key: "Content-Security-Policy", value: POLICY },
          { key: "X-Content-Type-Options", value: "nosniff" },
          { key: "Referrer-Policy", value: "same-origin" },
        ],
      },
    ],
  }),
  images: { unoptimized: true },
  compress: false, // would hold back the event stream; nginx or the gateway compresses
  poweredByHeader: false,
  reactCompiler: true,
  typescript: { ignoreBuildErrors: true }, // `make lint` checks types: a third of the time of a build
  allowedDevOrigins: ["127.0.0.1", "localhost", "*.local"],
  turbopack: { root: import.meta.dirname },
  ...(output !== "export" && {
    rewrites: async () =>
      ["/api/:path*", "/preview/:path*", "/docs", "/openapi.json"].map((source) => ({
        source,
        destination: `${gateway}${source}`,
      })),
  }),
};

export default config;
