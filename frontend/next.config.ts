import type { NextConfig } from "next";

const isExport = process.env.NEXT_OUTPUT === "export";
const gateway = process.env.GATEWAY_URL ?? "http://127.0.0.1:8001";

const config: NextConfig = {
  // One source, two builds: a static export that the gateway serves itself, or a Node server on port 3000 behind nginx.
  output: isExport ? "export" : "standalone",
  images: { unoptimized: true },
  compress: false, // would hold back the event stream; nginx or the gateway compresses
  poweredByHeader: false,
  reactCompiler: true,
  allowedDevOrigins: ["127.0.0.1", "localhost", "*.local"],
  turbopack: { root: import.meta.dirname },
  ...(isExport
    ? {}
    : {
        rewrites: async () =>
          ["/api/:path*", "/preview/:path*", "/docs", "/openapi.json"].map((source) => ({
            source,
            destination: `${gateway}${source}`,
          })),
      }),
};

export default config;
